// The search of explore.py for all structures of a layer at once: what fits, exact beats, bounds of cycles, exact cycles, the best of
// every cell. Quantities and formulas are those of factors.py and closed_form.py, which say more about each; kernel.py fills the tables.
//
// All quantities are whole numbers below 2**53, which doubles hold exactly; quotients are rounded as NumPy rounds them. So results equal
// those of the NumPy search bit for bit (compile without -ffast-math, and with -ffp-contract=off).

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

namespace {

constexpr double INF = std::numeric_limits<double>::infinity();
enum { FIRST, SECOND, MIDDLE, LAST };                // classes of tiles
enum { S, K, C, B, Y, X, LOOPS };                    // tile loops
enum { REST, INNER, TAIL, THREE, FACTORS };          // how many tiles of a loop
enum { INPUT, WEIGHT, OUTPUT, PSUM, BANKS };
enum Objective { BOTH, CYCLES, BYTES };
constexpr size_t ROUND = 1 << 11;                    // tilings kept before those that cannot win are ruled out

struct Channel {  // dse.schedule.axes.ChannelCuts, one cut
    double ts, tk, tc, count[3], groups[4], channels[4], records[4], blocks[4], runs[4], vectors[4], input_beats[4], output_beats[4],
        weight_slot, parameter_slot, pixel_entries, code, tiled;
};

struct Cut {  // dse.schedule.axes.SpatialCuts, one cut
    double size, count, outputs[4], band[4], load[4], frame, load_sum, band_sum, code;
};

struct Constants {
    double drain, fixed_compute, parameter_beats, passes, drain_steps, batch, rows, columns, latency, num, den, row_beats, max_burst,
        parameter_depth, memory_start, memory_end, phase_change, before, instruction, evaluation, tolerance;
};

struct Program {
    double words, beats, first, tile;
};

// One structure, as kernel.py flattens it.
struct Moved {
    int32_t weights, ws, wk, wc, parameters, ps, pk, inputs, iy, ix, ic, stored, oy, ox, oc;
};
struct Limit {
    int32_t computes, y, x, s, k, c, evaluates;
};
struct Structure {
    int32_t tiled, loops, outer_pixels, resident, weights_again, parameters_again, inputs_by_k, revisited, moved_count, limit_count,
        kind_count;
    const Moved* moved() const { return reinterpret_cast<const Moved*>(this + 1); }
    const Limit* limits() const { return reinterpret_cast<const Limit*>(moved() + moved_count); }
    const int32_t* kinds() const { return reinterpret_cast<const int32_t*>(limits() + limit_count); }
    bool has(int loop) const { return loops >> loop & 1; }
    int words_loop() const { return has(C) ? C : S; }
    int channels_loop() const { return has(K) ? K : S; }
    bool keeps_inputs() const { return resident && !outer_pixels; }
    bool keeps_weights() const { return resident && outer_pixels; }
};

double sum_over(const double values[4], double count) { return values[FIRST] * (count - 1) + (count > 1 ? values[LAST] : values[FIRST]); }

struct Pixel {  // a row and a column cut
    double frame, first, columns, x_frame, loads, tiles, band_sum, first_load, last;
    int32_t y, x, p, code;
};

struct Tile {  // a tiling that may be the best of some cell
    double bound, beats, cycles;
    int32_t cell, structure, channel, y, x;
};

struct Search {
    Constants run;
    Objective objective;
    const Channel* channels;
    const Cut *ys, *xs;
    int64_t channel_count, y_count, x_count;
    std::vector<const Structure*> structures;
    std::vector<const Program*> programs;
    std::vector<double> levels[BANKS];
    int64_t cells[BANKS], strides[BANKS], cell_count;
    std::vector<double> known;  // of each cell: cycles (or beats) that some tiling reaches
    std::vector<Tile> waiting;
    int64_t compared = 0;

    // -- what fits, and bounds -----------------------------------------------------------------------------------------------

    struct Slots {
        double inputs, weights, outputs, sums, parameters;
    };

    Slots slots(const Structure& s, const Channel& c) const {
        bool input = s.loops & ~(1 << K), output = s.loops & ~(1 << C), weight = s.loops & 7, parameter = s.loops & 3;
        double inputs = c.pixel_entries * (input ? 2 : 1), weights = c.weight_slot * (weight ? 2 : 1);
        if (s.keeps_inputs()) inputs = c.pixel_entries * c.count[C] * run.batch;
        if (s.keeps_weights()) weights = c.weight_slot * c.count[S] * c.count[K] * c.count[C];
        double sums = s.has(C) ? c.groups[FIRST] * run.passes * c.blocks[FIRST] * run.drain_steps : 0;
        return {inputs, weights, c.output_beats[FIRST] * (output ? 2 : 1), sums, c.parameter_slot * (parameter ? 2 : 1)};
    }

    double frame(const Structure& s, const Cut& y, const Cut& x) const {
        return s.keeps_inputs() ? y.frame * y.count * (x.frame * x.count) : y.frame * x.frame;
    }

    std::vector<Pixel> pixels(const Structure& s) const {
        std::vector<Pixel> result;
        for (int32_t i = 0; i < y_count; i++)
            for (int32_t j = 0; j < x_count; j++) {
                const Cut &y = ys[i], &x = xs[j];
                if ((y.count > 1) != s.has(Y) || (x.count > 1) != s.has(X)) continue;
                result.push_back({frame(s, y, x), y.band[FIRST] * x.outputs[FIRST], x.outputs[FIRST], x.frame,
                                  run.batch * (y.load_sum * x.load_sum), run.batch * (y.count * x.count), y.band_sum,
                                  y.load[FIRST] * x.load[FIRST], y.outputs[s.has(Y) ? LAST : FIRST] * x.outputs[s.has(X) ? LAST : FIRST],
                                  i, j, int32_t(result.size()), int32_t(y.code * 4 + x.code)});
            }
        std::sort(result.begin(), result.end(), [](const Pixel& a, const Pixel& b) {
            return a.frame != b.frame ? a.frame < b.frame : a.p < b.p; });
        return result;
    }

    int level(int bank, double need) const {
        int result = 0;
        for (double level : levels[bank]) result += level < need;
        return result;
    }

    // The beats that do not depend on pixels, and those that do: const + inputs * loads + again * tiles.
    struct Beats {
        double constant, inputs, again;
    };

    double stored(const Structure& s, const Channel& c) const {
        double repeats = s.has(K) ? c.count[S] : 1;
        return sum_over(c.output_beats, c.count[s.channels_loop()]) * (repeats * (run.batch * run.rows * run.columns));
    }

    Beats beats(const Structure& s, const Channel& c) const {
        double groups = sum_over(c.groups, c.count[S]);
        double inputs = s.has(C) ? sum_over(c.input_beats, c.count[C]) * c.count[S] : sum_over(c.input_beats, c.count[S]);
        double weights = groups * sum_over(c.records, c.count[K]) * sum_over(c.runs, c.count[C]);
        double parameters = groups * sum_over(c.channels, c.count[K]) * run.parameter_beats;
        Beats result = {stored(s, c), s.inputs_by_k ? inputs * c.count[K] : inputs, 0};
        (s.weights_again ? result.again : result.constant) += weights;
        (s.parameters_again ? result.again : result.constant) += parameters;
        return result;
    }

    double before(const Program& program) const {
        double fetch = std::ceil(program.beats * run.den / run.num) + run.latency;
        return run.before + fetch + run.instruction * program.first;
    }

    double spaced_sum(const Channel& c) const {
        double spaced[4];
        for (int at = 0; at < 4; at++) spaced[at] = std::max(c.vectors[at], run.drain);
        return sum_over(spaced, c.count[C]);
    }

    double blocks(const Channel& c) const { return sum_over(c.groups, c.count[S]) * sum_over(c.blocks, c.count[K]) * run.passes; }

    void look_at(int32_t number, int32_t m, const std::vector<Pixel>& pixels) {
        const Structure& s = *structures[number];
        const Channel& c = channels[m];
        const Slots need = slots(s, c);
        const double most_inputs = levels[INPUT].back(), most_outputs = levels[OUTPUT].back(), most_sums = levels[PSUM].back();
        double first_beats = c.groups[FIRST] * (c.records[FIRST] * c.runs[FIRST] + c.channels[FIRST] * run.parameter_beats);
        double burst = c.groups[FIRST] * std::max(c.records[FIRST] * c.runs[FIRST], c.channels[FIRST] * run.parameter_beats);
        if (need.weights > levels[WEIGHT].back() || need.parameters > run.parameter_depth || burst > run.max_burst) return;
        const double row_beats = s.has(C) || s.has(S) ? 0 : run.row_beats;
        const Beats moved = beats(s, c);
        const Program* program = programs[number] + int(c.code) * 16;
        // Of the bound: see Block.cycles_bound.
        const double pace = run.den / run.num, latency = run.latency + run.memory_start, load = latency + run.memory_end;
        const double spaced = spaced_sum(c), all = c.count[S] * c.count[K] * c.count[C];
        const double work = blocks(c) * spaced * (run.batch * run.columns);
        const double idle = (spaced - sum_over(c.vectors, c.count[C])) / c.count[C];
        const double overhead = all * (run.fixed_compute - idle + run.phase_change);
        const double leaving = c.output_beats[s.has(s.channels_loop()) ? LAST : FIRST], first_word = c.input_beats[FIRST];
        const int32_t weight_cell = level(WEIGHT, need.weights) * strides[WEIGHT];
        // Phases that load, by pixel tile and in all: see Structure::revisited.
        const double loads_by_tile = s.revisited == 0 ? all : s.revisited == 1 ? c.count[S] * c.count[C] : 0;
        const double loads_once = s.revisited == 2 ? all : 0;
        int input_level = 0;
        double starts[16];
        for (int code = 0; code < 16; code++) starts[code] = before(program[code]) + latency + 1 + run.phase_change;
        for (const Pixel& p : pixels) {
            const double inputs = need.inputs * p.frame, outputs = need.outputs * p.first, sums = need.sums * p.first;
            if (inputs > most_inputs) break;  // sorted by frame
            while (levels[INPUT][input_level] < inputs) input_level++;
            if (outputs > most_outputs || sums > most_sums || p.x_frame * row_beats > run.max_burst
                || p.columns * c.output_beats[FIRST] > run.max_burst) continue;
            compared++;
            const Program& shape = program[p.code];
            if (!(shape.words < INF)) continue;
            const double tiling_beats = moved.constant + moved.inputs * p.loads + moved.again * p.tiles;
            double bound = tiling_beats + shape.beats;
            const int32_t cell = int32_t(input_level * strides[INPUT] + weight_cell + level(OUTPUT, outputs) * strides[OUTPUT]
                                         + level(PSUM, sums) * strides[PSUM]);
            if (objective != BYTES) {
                const double last = leaving * p.last, phases = p.tiles * all;
                const double array = (first_beats + first_word * p.first_load) * pace + load + work * p.band_sum + p.tiles * overhead;
                const double loading = p.tiles * loads_by_tile + loads_once;
                const double memory = (tiling_beats - last) * pace + loading * load + phases * run.phase_change;
                bound = std::floor(std::max(array, memory) + (starts[p.code] + last * pace) - 1e-3);
            }
            if (bound > known[cell] * run.tolerance) continue;
            if (objective == BYTES) spread(known, cell, bound);
            waiting.push_back({bound, tiling_beats + shape.beats, 0, cell, number, m, p.y, p.x});
            if (waiting.size() >= ROUND && waiting.size() >= 2 * settled) rule_out();
        }
    }

    size_t settled = 0;

    // Evaluates the most promising tiling of each cell, which improves ``known``, and drops what that rules out.
    void rule_out() {
        if (objective != BYTES) {
            std::vector<int32_t> best(cell_count, -1);
            for (size_t at = 0; at < waiting.size(); at++) {
                int32_t& now = best[waiting[at].cell];
                if (now < 0 || waiting[at].bound < waiting[now].bound) now = int32_t(at);
            }
            for (int32_t at : best)
                if (at >= 0 && waiting[at].bound < known[waiting[at].cell]) spread(known, waiting[at].cell, cycles(waiting[at]));
        }
        waiting.erase(std::remove_if(waiting.begin(), waiting.end(), [this](const Tile& tile) {
            return tile.bound > known[tile.cell] * run.tolerance; }), waiting.end());
        settled = waiting.size();
    }

    // What holds for a cell holds for all larger ones: sets those above ``value``; ``also``: a second table, to be set where the first is.
    void spread(std::vector<double>& table, int32_t cell, double value, std::vector<double>* also = nullptr, double also_value = 0) const {
        if (table[cell] <= value) return;
        int64_t low[BANKS];
        for (int bank = 0; bank < BANKS; bank++) low[bank] = cell / strides[bank] % cells[bank];
        for (int64_t i = low[0]; i < cells[0]; i++)
            for (int64_t w = low[1]; w < cells[1]; w++)
                for (int64_t o = low[2]; o < cells[2]; o++) {
                    const int64_t row = ((i * cells[1] + w) * cells[2] + o) * cells[3];
                    for (int64_t at = row + low[3]; at < row + cells[3] && table[at] > value; at++) {
                        table[at] = value;
                        if (also) (*also)[at] = also_value;
                    }
                }
    }

    // -- exact cycles ----------------------------------------------------------------------------------------------------------

    const Program& program(const Tile& t) const {
        return programs[t.structure][int(channels[t.channel].code) * 16 + int(ys[t.y].code) * 4 + int(xs[t.x].code)];
    }

    double cycles(const Tile& t) const {
        const Structure& s = *structures[t.structure];
        const Channel& c = channels[t.channel];
        const Cut &y = ys[t.y], &x = xs[t.x];
        const Program& shape = program(t);
        const double fixed = run.memory_start + run.latency + run.memory_end;
        const double evaluation = run.evaluation + run.instruction * shape.tile - fixed;
        double memory[128], limit[32], factor[LOOPS * FACTORS];
        for (int at = 0; at < s.moved_count; at++) {
            const Moved& key = s.moved()[at];
            double beats = 0;
            if (key.weights) beats += c.groups[key.ws] * c.records[key.wk] * c.runs[key.wc];
            if (key.parameters) beats += c.groups[key.ps] * c.channels[key.pk] * run.parameter_beats;
            if (key.inputs) beats += y.load[key.iy] * x.load[key.ix] * c.input_beats[key.ic];
            if (key.stored) beats += y.outputs[key.oy] * x.outputs[key.ox] * c.output_beats[key.oc];
            memory[at] = std::ceil(beats * run.den / run.num);
        }
        for (int at = 0; at < s.limit_count; at++) {
            const Limit& key = s.limits()[at];
            limit[at] = evaluation;
            if (key.computes) {
                const double vectors = c.vectors[key.c], spaced = std::max(vectors, run.drain);
                const double per_pixel = c.groups[key.s] * c.blocks[key.k] * (run.passes * spaced);
                const double compute = y.band[key.y] * x.outputs[key.x] * per_pixel + (run.fixed_compute + vectors - spaced) - fixed;
                limit[at] = key.evaluates ? std::max(compute, evaluation) : compute;
            }
        }
        const double count[LOOPS] = {c.count[S], c.count[K], c.count[C], run.batch, y.count, x.count};
        double tiles = 1;
        for (int loop = 0; loop < LOOPS; loop++) {
            const double n = count[loop];
            factor[loop * FACTORS + REST] = n - 1;
            factor[loop * FACTORS + INNER] = n - 2;
            factor[loop * FACTORS + TAIL] = std::max(n - 3, 0.0);
            factor[loop * FACTORS + THREE] = n > 2;
            if (s.has(loop)) tiles *= n;
        }
        const double last = std::ceil(last_store(s, c, y, x) * run.den / run.num) + run.latency;
        double total = before(shape) + (run.memory_start + last + 1) + (run.phase_change + fixed) * (tiles + 1);
        const int32_t* at = s.kinds();
        for (int kind = 0; kind < s.kind_count; kind++) {
            const int32_t moves = *at++, waits = *at++;
            double times = 0;
            for (int terms = *at++; terms > 0; terms--) {
                double term = 1;
                for (int factors = *at++; factors > 0; factors--) term *= factor[*at++];
                times += term;
            }
            total += times * (moves < 0 ? limit[waits] : std::max(memory[moves], limit[waits]));
        }
        return total;
    }

    double last_store(const Structure& s, const Channel& c, const Cut& y, const Cut& x) const {
        return y.outputs[s.has(Y) ? LAST : FIRST] * x.outputs[s.has(X) ? LAST : FIRST]
            * c.output_beats[s.has(s.channels_loop()) ? LAST : FIRST];
    }

    // -- the best --------------------------------------------------------------------------------------------------------------

    void bounded() {
        known.assign(cell_count, INF);
        waiting.reserve(2 * ROUND);
        std::vector<Pixel> orders[8];
        for (int32_t number = 0; number < int32_t(structures.size()); number++) {
            const Structure& s = *structures[number];
            std::vector<Pixel>& order = orders[s.has(Y) + 2 * s.has(X) + 4 * s.keeps_inputs()];
            if (order.empty()) order = pixels(s);
            for (int32_t m = 0; m < channel_count; m++)
                if (channels[m].tiled == s.tiled) look_at(number, m, order);
        }
        rule_out();
    }

    // Of what is left the tilings that no other one, no larger, beats in both cycles and beats; and the fewest cycles of each cell.
    std::vector<Tile> front(std::vector<double>& fewest) {
        std::sort(waiting.begin(), waiting.end(), [](const Tile& a, const Tile& b) { return a.beats < b.beats; });
        std::vector<Tile> result;
        std::vector<double> since(cell_count, INF);  // the beats at which the fewest cycles were reached
        fewest.assign(cell_count, INF);
        for (Tile& tile : waiting) {
            auto worse = [&](double cycles) {
                return cycles > fewest[tile.cell] || (cycles == fewest[tile.cell] && since[tile.cell] < tile.beats); };
            if (worse(tile.bound)) continue;
            tile.cycles = cycles(tile);
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
        std::vector<double> limit;
        std::vector<Tile> tiles = front(limit);
        for (double& value : limit) value = objective == BOTH ? value * run.tolerance : INF;
        tiles.erase(std::remove_if(tiles.begin(), tiles.end(), [&](const Tile& t) { return t.cycles > limit[t.cell]; }), tiles.end());
        std::sort(tiles.begin(), tiles.end(), [this](const Tile& a, const Tile& b) {
            const double a_goals[2] = {objective == CYCLES ? a.cycles : a.beats, objective == CYCLES ? a.beats : a.cycles};
            const double b_goals[2] = {objective == CYCLES ? b.cycles : b.beats, objective == CYCLES ? b.beats : b.cycles};
            if (a_goals[0] != b_goals[0]) return a_goals[0] < b_goals[0];
            return a_goals[1] != b_goals[1] ? a_goals[1] < b_goals[1] : earlier(a, b);
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
        const Structure& s = *structures[t.structure];
        const Channel& c = channels[t.channel];
        const Cut& y = ys[t.y];
        const double written = stored(s, c), groups = y.band_sum * (blocks(c) * (run.batch * run.columns)), count = c.count[C];
        const bool limited = run.drain > c.vectors[FIRST] || (count > 1 && run.drain > c.vectors[LAST]);
        out[0] = t.cycles;
        out[1] = t.beats - written;
        out[2] = written;
        out[3] = groups * sum_over(c.vectors, count);
        out[4] = std::ceil((t.beats - program(t).beats) * run.den / run.num);
        out[5] = groups * (limited ? spaced_sum(c) : count * run.drain);
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

Search make(const double* constants, const int64_t* sizes, const double* channels, const double* ys, const double* xs,
            const int32_t* const* structures, const double* const* programs) {
    static_assert(sizeof(Constants) == 21 * sizeof(double) && sizeof(Channel) == 43 * sizeof(double) && sizeof(Cut) == 18 * sizeof(double)
                  && sizeof(Structure) == 11 * 4 && sizeof(Moved) == 15 * 4 && sizeof(Limit) == 7 * 4, "as kernel.py lays them out");
    Search search;
    search.run = *reinterpret_cast<const Constants*>(constants);
    search.channels = reinterpret_cast<const Channel*>(channels);
    search.ys = reinterpret_cast<const Cut*>(ys);
    search.xs = reinterpret_cast<const Cut*>(xs);
    search.objective = Objective(sizes[0]);
    search.channel_count = sizes[1], search.y_count = sizes[2], search.x_count = sizes[3];
    for (int64_t at = 0; at < sizes[4]; at++) {
        search.structures.push_back(reinterpret_cast<const Structure*>(structures[at]));
        search.programs.push_back(programs ? reinterpret_cast<const Program*>(programs[at]) : nullptr);
    }
    return search;
}

}  // namespace

// ``sizes``: objective, channel cuts, row cuts, column cuts, structures, wanted rows, levels of each bank. ``tilings``: four a tiling
// (structure, channel, row, column cut), ``figures``: six a tiling; room for one of each wanted row. Returns how many.
extern "C" int64_t nearmac_search(const double* constants, const int64_t* sizes, const double* channels, const double* ys, const double* xs,
                                  const int32_t* const* structures, const double* const* programs, const double* levels,
                                  const int32_t* wanted, int32_t* place, int32_t* tilings, double* figures, int64_t* compared) {
    Search search = make(constants, sizes, channels, ys, xs, structures, programs);
    for (int bank = 0; bank < BANKS; bank++) {
        search.cells[bank] = sizes[6 + bank];
        search.levels[bank].assign(levels, levels + sizes[6 + bank]);
        levels += sizes[6 + bank];
    }
    search.cell_count = 1;
    for (int bank = BANKS - 1; bank >= 0; bank--) {
        search.strides[bank] = search.cell_count;
        search.cell_count *= search.cells[bank];
    }
    const std::vector<Tile> best = search.best(wanted, sizes[5], place);
    for (size_t at = 0; at < best.size(); at++) {
        const int32_t row[4] = {best[at].structure, best[at].channel, best[at].y, best[at].x};
        std::copy(row, row + 4, tilings + 4 * at);
        search.figures(best[at], figures + 6 * at);
    }
    *compared = search.compared;
    return int64_t(best.size());
}

// ``depths``, ``out``: five a row. ``sizes`` as above.
extern "C" void nearmac_missing(const double* constants, const int64_t* sizes, const double* channels, const double* ys, const double* xs,
                                const int32_t* const* structures, const double* depths, int64_t rows, double* out) {
    make(constants, sizes, channels, ys, xs, structures, nullptr).missing(depths, rows, out);
}
