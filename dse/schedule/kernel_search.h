// The search of explore.py for all structures of a layer at once: the best tiling of every cell.

#pragma once

#include "kernel_bounds.h"

namespace {

enum Objective { BOTH, CYCLES, BYTES };
constexpr size_t ROUND = 256;  // tilings kept before those that cannot win are ruled out
constexpr int STEPS = 4;       // of cycles, between the fewest and those that are allowed

struct Tile {  // a tiling that may be the best of some cell; ``bound``: of its cycles, which are 0 until they are known
    double bound, beats, cycles;
    int32_t cell, structure, channel, y, x;
};

// First the fewest cycles of every cell are found (or beats, if they come first), then among the tilings that are allowed so many the
// fewest beats.
struct Search : Bounds {
    Objective objective;
    enum { FEWEST_CYCLES, FEWEST_BEATS, BEATS_WITHIN_LIMIT } phase;
    std::vector<double> known;  // of each cell: cycles (or beats) that some tiling reaches; at last the fewest
    std::vector<double> limit;  // of each cell: cycles that are allowed
    std::vector<double> steps, least;  // of each cell and step: cycles, and beats that some tiling reaches with no more cycles
    std::vector<Tile> waiting;
    size_t next_round = ROUND;
    int64_t compared = 0;

    // -- single tilings --------------------------------------------------------------------------------------------------------

    std::vector<double> bounds, all_beats;

    void look_at(const Work& work, const Pixels& pixels, const Terms& t) {
        const double most_outputs = levels[OUTPUT].back(), most_sums = levels[PSUM].back();
        const double* of[Pixels::VALUES];
        for (int value = 0; value < Pixels::VALUES; value++) of[value] = pixels.of[value].data();
        const int32_t* code = pixels.code.data();
        bounds.resize(t.pixel_count), all_beats.resize(t.pixel_count);
        double *to_bound = bounds.data(), *to_beats = all_beats.data();
        for (int64_t at = 0; at < t.pixel_count; at++) {  // without branches, so that several are computed at once
            const double beats = t.moved.constant + t.moved.inputs * of[Pixels::LOADS][at] + t.moved.again * of[Pixels::TILES][at];
            const double first = of[Pixels::FIRST_PIXELS][at];
            const bool fits = (t.need.outputs * first <= most_outputs) & (t.need.sums * first <= most_sums)
                & (of[Pixels::X_FRAME][at] * t.row_beats <= run.max_burst) & (of[Pixels::COLUMNS][at] * t.output_beats <= run.max_burst);
            const double cycles = bound(t, beats, of[Pixels::TILES][at], of[Pixels::BANDS][at], of[Pixels::FIRST_LOAD][at],
                                        t.leaving * of[Pixels::LAST_STORE][at], of[Pixels::TILES][at] * t.overhead,
                                        t.lengths->start[code[at]]);
            to_bound[at] = fits ? cycles : INF;
            to_beats[at] = beats + t.lengths->beats[code[at]];
        }
        for (int64_t at = 0; at < t.pixel_count; at++) {
            if (!(to_bound[at] < INF) || hopeless(work.smallest, to_bound[at], to_beats[at], cell_count - 1)) continue;
            const double first = of[Pixels::FIRST_PIXELS][at];
            const int64_t mine = cell(t, t.need.inputs * of[Pixels::FRAME][at], t.need.outputs * first, t.need.sums * first);
            if (hopeless(mine, to_bound[at], to_beats[at], mine)) continue;
            if (phase == FEWEST_BEATS) spread(known, mine, to_beats[at]);
            waiting.push_back({to_bound[at], to_beats[at], 0, int32_t(mine), work.number, work.m, pixels.y[at], pixels.x[at]});
            if (waiting.size() >= next_round) rule_out();
        }
    }

    // Whether tilings that need the cell or a larger one, with at least these cycles and beats, are no better in any cell than some other
    // one. ``largest``: they need no larger one, and so take as many cycles as any there takes.
    bool hopeless(int64_t cell, double bound, double beats, int64_t largest) const {
        if (phase == FEWEST_CYCLES) return bound >= known[cell];
        if (phase == FEWEST_BEATS) return beats > known[cell];
        if (bound > limit[cell]) return true;
        const double least_cycles = std::max(bound, known[largest]);
        int step = STEPS;
        while (step > 0 && steps[cell * STEPS + step - 1] > least_cycles) step--;
        return step > 0 && beats > least[cell * STEPS + step - 1];
    }

    bool hopeless(const Tile& tile) const { return hopeless(tile.cell, tile.bound, tile.beats, tile.cell); }

    bool hopeless(const Work& work) const { return hopeless(work.smallest, work.bound, work.beats, cell_count - 1); }

    double cycles(const Tile& t) const {
        return Model::cycles(*structures[t.structure], channels[t.channel], ys[t.y], xs[t.x], program(t));
    }

    const Program& program(const Tile& t) const {
        return programs[t.structure][int(channels[t.channel].code) * 16 + int(ys[t.y].code) * 4 + int(xs[t.x].code)];
    }

    // Evaluates the most promising tiling of each cell, and drops what that rules out. Whether it has evaluated any.
    bool rule_out() {
        bool any = false;
        if (phase != FEWEST_BEATS) {
            promising.assign(cell_count, -1);
            for (size_t at = 0; at < waiting.size(); at++) {
                const Tile& tile = waiting[at];
                if (tile.cycles) continue;
                int32_t& now = promising[tile.cell];
                const bool better = now < 0 || (phase == FEWEST_CYCLES ? tile.bound < waiting[now].bound : tile.beats < waiting[now].beats);
                if (better) now = int32_t(at);
            }
            for (int32_t at : promising)
                if (at >= 0 && !hopeless(waiting[at])) {
                    evaluate(waiting[at]);
                    any = true;
                }
        }
        waiting.erase(std::remove_if(waiting.begin(), waiting.end(), [this](const Tile& tile) {
            return hopeless(tile); }), waiting.end());
        next_round = std::max(ROUND, 2 * waiting.size());
        return any;
    }

    std::vector<int32_t> promising;

    void evaluate(Tile& tile) {
        tile.bound = tile.cycles = cycles(tile);
        if (phase == FEWEST_CYCLES) {
            spread(known, tile.cell, tile.cycles);
            evaluated.push_back(tile);
        } else settle(tile);
    }

    std::vector<Tile> evaluated;

    void settle(const Tile& tile) {
        from(tile.cell, [&](int64_t cell) {
            for (int step = STEPS - 1; step >= 0 && tile.cycles <= steps[cell * STEPS + step]; step--)
                least[cell * STEPS + step] = std::min(least[cell * STEPS + step], tile.beats);
            return true;
        });
    }

    // Calls ``visit`` for a cell and all larger ones; where it says no, the rest of the row is left out.
    template <typename Visit> void from(int64_t cell, Visit visit) const {
        int64_t low[BANKS];
        for (int bank = 0; bank < BANKS; bank++) low[bank] = cell / strides[bank] % cells[bank];
        for (int64_t i = low[0]; i < cells[0]; i++)
            for (int64_t w = low[1]; w < cells[1]; w++)
                for (int64_t o = low[2]; o < cells[2]; o++) {
                    const int64_t row = ((i * cells[1] + w) * cells[2] + o) * cells[3];
                    for (int64_t at = row + low[3]; at < row + cells[3] && visit(at); at++) {}
                }
    }

    // What holds for a cell holds for all larger ones: sets those above ``value``; ``also``: a second table, to be set where the first is.
    void spread(std::vector<double>& table, int64_t cell, double value, std::vector<double>* also = nullptr, double also_value = 0) const {
        if (table[cell] <= value) return;
        from(cell, [&](int64_t at) {
            if (table[at] <= value) return false;
            table[at] = value;
            if (also) (*also)[at] = also_value;
            return true;
        });
    }

    // -- the best --------------------------------------------------------------------------------------------------------------

    // Sets ``limit``, and leaves in ``waiting`` what may be the best of some cell. Channel cuts with the lowest bounds come first: what
    // they reach saves most of the others a look at their tilings.
    void bounded() {
        pace = run.den / run.num;
        all_sums.resize(channel_count);
        for (int32_t m = 0; m < channel_count; m++) all_sums[m] = sums(channels[m]);
        all_lengths.resize(structures.size() * 16);
        known.assign(cell_count, INF);
        limit.assign(cell_count, INF);
        std::vector<Work> work = listed();
        phase = objective == BYTES ? FEWEST_BEATS : FEWEST_CYCLES;
        look_at(work);
        if (objective == BYTES) return;
        while (!waiting.empty()) rule_out();
        phase = BEATS_WITHIN_LIMIT;
        steps.resize(cell_count * STEPS);
        least.assign(cell_count * STEPS, INF);
        for (int64_t cell = 0; cell < cell_count; cell++) {
            limit[cell] = known[cell] * run.tolerance;
            for (int step = 0; step < STEPS; step++)
                steps[cell * STEPS + step] = known[cell] * (1 + (run.tolerance - 1) * step / STEPS);
        }
        for (const Tile& tile : evaluated) settle(tile);
        look_at(work);
        rule_out();
    }

    Pixels orders[8];

    Pixels& order(const Structure& s) { return orders[s.has(Y) + 2 * s.has(X) + 4 * s.keeps_inputs()]; }

    std::vector<Work> listed() {
        std::vector<int32_t> tiled[8];
        for (int32_t m = 0; m < channel_count; m++) tiled[int(channels[m].tiled)].push_back(m);
        std::vector<Work> work;
        Terms t;
        for (int32_t number = 0; number < int32_t(structures.size()); number++) {
            const Structure& s = *structures[number];
            Pixels& mine = order(s);
            if (!mine.size()) mine = pixels(s);
            for (int32_t m : tiled[s.tiled]) {
                compared += int64_t(mine.size());
                if (!terms(number, m, mine, t)) continue;
                work.push_back({0, 0, 0, number, m});
                bound_all(t, mine, work.back());
            }
        }
        return work;
    }

    void look_at(std::vector<Work>& work) {
        work.erase(std::remove_if(work.begin(), work.end(), [this](const Work& each) {
            return hopeless(each); }), work.end());
        std::sort(work.begin(), work.end(), [this](const Work& a, const Work& b) {
            return phase == FEWEST_CYCLES ? a.bound < b.bound : a.beats < b.beats; });
        Terms t;
        for (const Work& each : work) {
            if (hopeless(each)) continue;
            const Pixels& mine = order(*structures[each.number]);
            terms(each.number, each.m, mine, t);
            look_at(each, mine, t);
        }
    }

    // Of what is left the tilings that no other one, no larger, beats in both cycles and beats.
    std::vector<Tile> front() {
        std::sort(waiting.begin(), waiting.end(), [](const Tile& a, const Tile& b) { return a.beats < b.beats; });
        std::vector<Tile> result;
        std::vector<double> since(cell_count, INF);  // the beats at which the fewest cycles were reached
        std::vector<double> fewest(cell_count, INF);
        for (Tile& tile : waiting) {
            auto worse = [&](double cycles) {
                return cycles > fewest[tile.cell] || (cycles == fewest[tile.cell] && since[tile.cell] < tile.beats); };
            if (phase != FEWEST_BEATS && worse(tile.bound)) continue;
            if (!tile.cycles) tile.cycles = cycles(tile);
            if (worse(tile.cycles)) continue;
            result.push_back(tile);
            spread(fewest, tile.cell, tile.cycles, &since, tile.beats);
        }
        return result;
    }

    static bool earlier(const Tile& a, const Tile& b) {  // in the order of enumeration
        if (a.structure != b.structure) return a.structure < b.structure;
        if (a.channel != b.channel) return a.channel < b.channel;
        return a.y != b.y ? a.y < b.y : a.x < b.x;
    }

    // The order in which the NumPy search lists tilings: by beats, then as it comes across them.
    bool listed_before(const Tile& a, const Tile& b) const {
        if (a.beats != b.beats) return a.beats < b.beats;
        if (a.structure == b.structure && a.channel == b.channel) {
            const Structure& s = *structures[a.structure];
            const double ours = frame(s, ys[a.y], xs[a.x]), theirs = frame(s, ys[b.y], xs[b.x]);
            if (ours != theirs) return ours < theirs;
        }
        return earlier(a, b);
    }

    // The distinct best tilings; for each of ``wanted`` (levels, four a row) its place among them, or -1.
    std::vector<Tile> best(const int32_t* wanted, int64_t wanted_count, int32_t* place) {
        bounded();
        std::vector<Tile> tiles = front();
        tiles.erase(std::remove_if(tiles.begin(), tiles.end(), [&](const Tile& t) { return t.cycles > limit[t.cell]; }), tiles.end());
        std::sort(tiles.begin(), tiles.end(), [this](const Tile& a, const Tile& b) {
            if (a.beats != b.beats) return a.beats < b.beats;
            return a.cycles != b.cycles ? a.cycles < b.cycles : earlier(a, b);
        });
        struct Needs { int32_t level[BANKS]; };
        std::vector<Needs> needs(tiles.size());
        for (size_t at = 0; at < tiles.size(); at++)
            for (int bank = 0; bank < BANKS; bank++) needs[at].level[bank] = int32_t(tiles[at].cell / strides[bank] % cells[bank]);
        std::vector<int32_t> chosen;
        std::vector<char> is_chosen(tiles.size(), 0);
        for (int64_t row = 0; row < wanted_count; row++) {
            const int32_t* have = wanted + row * BANKS;
            int64_t cell = 0;
            for (int bank = 0; bank < BANKS; bank++) cell += have[bank] * strides[bank];
            place[row] = -1;
            for (size_t at = 0; at < tiles.size() && place[row] < 0; at++) {
                const int32_t* need = needs[at].level;
                if (tiles[at].cycles <= limit[cell] && need[0] <= have[0] && need[1] <= have[1] && need[2] <= have[2]
                    && need[3] <= have[3]) place[row] = int32_t(at);
            }
            if (place[row] >= 0 && !is_chosen[place[row]]) {
                is_chosen[place[row]] = 1;
                chosen.push_back(place[row]);
            }
        }
        std::sort(chosen.begin(), chosen.end(), [&](int32_t a, int32_t b) { return listed_before(tiles[a], tiles[b]); });
        std::vector<int32_t> rank(tiles.size(), -1);
        std::vector<Tile> result;
        for (int32_t at : chosen) {
            rank[at] = int32_t(result.size());
            result.push_back(tiles[at]);
        }
        for (int64_t row = 0; row < wanted_count; row++)
            if (place[row] >= 0) place[row] = rank[place[row]];
        return result;
    }

    // -- results ---------------------------------------------------------------------------------------------------------------

    // cycles, beats read and written, issue, memory bound, drain bound cycles: see ClosedForm.
    void figures(const Tile& t, double* out) const {
        const Channel& c = channels[t.channel];
        const Sums& sums = all_sums[t.channel];
        const double written = sums.stored, groups = ys[t.y].band_sum * (sums.blocks * (run.batch * run.columns)), count = c.count[C];
        const bool limited = run.drain > c.vectors[FIRST] || (count > 1 && run.drain > c.vectors[LAST]);
        out[0] = t.cycles;
        out[1] = t.beats - written;
        out[2] = written;
        out[3] = groups * sum_over(c.vectors, count);
        out[4] = std::ceil((t.beats - program(t).beats) * run.den / run.num);
        out[5] = groups * (limited ? sums.spaced : count * run.drain);
    }

    // For each row of depths (of all five banks): the entries that the tiling needs which comes closest, or -1.
    void missing(const double* depths, int64_t rows, double* out) const {
        std::vector<double> closest(rows, INF);
        std::fill(out, out + 5 * rows, -1);
        for (const Structure* s : structures) {
            if (s->resident) continue;
            double least_frame[2] = {INF, INF}, least_band = INF, least_columns = INF;
            for (int64_t i = 0; i < y_count; i++)
                if ((ys[i].count > 1) == s->has(Y)) {
                    least_frame[0] = std::min(least_frame[0], ys[i].frame);
                    least_band = std::min(least_band, ys[i].band[FIRST]);
                }
            for (int64_t j = 0; j < x_count; j++)
                if ((xs[j].count > 1) == s->has(X)) {
                    least_frame[1] = std::min(least_frame[1], xs[j].frame);
                    least_columns = std::min(least_columns, xs[j].outputs[FIRST]);
                }
            for (int64_t m = 0; m < channel_count; m++) {
                if (channels[m].tiled != s->tiled) continue;
                const Slots slot = slots(*s, channels[m]);
                const double frame = least_frame[0] * least_frame[1], pixels = least_band * least_columns;
                const double needs[5] = {slot.inputs * frame, slot.weights, slot.outputs * pixels, slot.sums * pixels, slot.parameters};
                for (int64_t row = 0; row < rows; row++) {
                    double worst = 0;
                    for (int bank = 0; bank < 5; bank++) worst = std::max(worst, needs[bank] / std::max(depths[5 * row + bank], 0.5));
                    if (worst >= closest[row]) continue;
                    closest[row] = worst;
                    std::copy(needs, needs + 5, out + 5 * row);
                }
            }
        }
    }
};

}  // namespace
