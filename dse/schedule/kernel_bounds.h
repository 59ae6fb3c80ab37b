// Bounds of very many tilings at little cost: see factors.py. What fits a channel cut's structure, exact beats, and cycles from below.

#pragma once

#include "kernel_model.h"

namespace {

enum { INPUT, WEIGHT, OUTPUT, PSUM, BANKS };

// The pixel cuts of a structure (a row and a column cut each), those with the smallest frames first.
struct Pixels {
    enum { FRAME, FIRST_PIXELS, COLUMNS, X_FRAME, LOADS, TILES, BANDS, FIRST_LOAD, LAST_STORE, VALUES };
    std::vector<double> of[VALUES], least[VALUES];  // least: among those up to each
    std::vector<double> most_tiles;
    std::vector<int32_t> y, x, code;
    size_t size() const { return y.size(); }
};

// Of a structure's programs, by code of the pixel cut: beats and cycles before the first phase, infinite where they exceed their RAM.
struct Lengths {
    double beats[16], start[16], least_beats = INF, least_start = INF;
    bool known = false;
};

// Cells are combinations of levels of the banks' depths: what fits a cell fits all larger ones.
struct Bounds : Model {
    std::vector<const Structure*> structures;
    std::vector<const Program*> programs;
    std::vector<double> levels[BANKS];
    int64_t cells[BANKS], strides[BANKS], cell_count;
    double pace;
    std::vector<Sums> all_sums;  // by channel cut

    Pixels pixels(const Structure& s) const {
        struct Place { double frame; int32_t y, x; };
        std::vector<Place> places;
        for (int32_t i = 0; i < y_count; i++)
            for (int32_t j = 0; j < x_count; j++)
                if ((ys[i].count > 1) == s.has(Y) && (xs[j].count > 1) == s.has(X)) places.push_back({frame(s, ys[i], xs[j]), i, j});
        std::stable_sort(places.begin(), places.end(), [](const Place& a, const Place& b) { return a.frame < b.frame; });
        Pixels result;
        for (const Place& place : places) {
            const Cut &y = ys[place.y], &x = xs[place.x];
            const double values[Pixels::VALUES] = {
                place.frame, y.band[FIRST] * x.outputs[FIRST], x.outputs[FIRST], x.frame, run.batch * (y.load_sum * x.load_sum),
                run.batch * (y.count * x.count), y.band_sum, y.load[FIRST] * x.load[FIRST],
                y.outputs[s.has(Y) ? LAST : FIRST] * x.outputs[s.has(X) ? LAST : FIRST]};
            const bool first = !result.size();
            for (int value = 0; value < Pixels::VALUES; value++) {
                result.least[value].push_back(first ? values[value] : std::min(values[value], result.least[value].back()));
                result.of[value].push_back(values[value]);
            }
            const double tiles = values[Pixels::TILES];
            result.most_tiles.push_back(first ? tiles : std::max(tiles, result.most_tiles.back()));
            result.y.push_back(place.y);
            result.x.push_back(place.x);
            result.code.push_back(int32_t(y.code * 4 + x.code));
        }
        return result;
    }

    std::vector<Lengths> all_lengths;  // by structure and code of the channel cut

    const Lengths& lengths(int32_t number, int code) {
        Lengths& result = all_lengths[number * 16 + code];
        if (result.known) return result;
        result.known = true;
        for (int at = 0; at < 16; at++) {
            const Program& program = programs[number][code * 16 + at];
            const bool fits = program.words < INF;
            result.beats[at] = fits ? program.beats : INF;
            result.start[at] = fits ? before(program) + run.latency + run.memory_start + 1 + run.phase_change : INF;
            result.least_beats = std::min(result.least_beats, result.beats[at]);
            result.least_start = std::min(result.least_start, result.start[at]);
        }
        return result;
    }

    int level(int bank, double need) const {
        int result = 0;
        for (double level : levels[bank]) result += level < need;
        return result;
    }

    // What the bounds of a channel cut's tilings are made of: see Block.cycles_bound.
    struct Terms {
        Slots need;
        Beats moved;
        double load, first_beats, first_word, work, overhead, leaving, all, loads_by_tile, loads_once, output_beats, row_beats;
        const Lengths* lengths;
        int64_t weight_cell, pixel_count;  // of the pixel cuts those whose inputs fit
    };

    // Whether any of them may fit.
    bool terms(int32_t number, int32_t m, const Pixels& pixels, Terms& t) {
        const Structure& s = *structures[number];
        const Channel& c = channels[m];
        t.need = slots(s, c);
        const double weights = c.groups[FIRST] * c.records[FIRST] * c.runs[FIRST];
        const double parameters = c.groups[FIRST] * c.channels[FIRST] * run.parameter_beats, burst = std::max(weights, parameters);
        if (t.need.weights > levels[WEIGHT].back() || t.need.parameters > run.parameter_depth || burst > run.max_burst) return false;
        const std::vector<double>& frames = pixels.of[Pixels::FRAME];
        t.pixel_count = std::partition_point(frames.begin(), frames.end(), [&](double frame) {
            return t.need.inputs * frame <= levels[INPUT].back(); }) - frames.begin();
        if (!t.pixel_count) return false;
        const double first = pixels.least[Pixels::FIRST_PIXELS][t.pixel_count - 1];
        if (t.need.outputs * first > levels[OUTPUT].back() || t.need.sums * first > levels[PSUM].back()) return false;
        t.lengths = &lengths(number, int(c.code));
        const Sums& sums = all_sums[m];
        t.moved = beats(s, c, sums);
        t.weight_cell = level(WEIGHT, t.need.weights) * strides[WEIGHT];
        t.output_beats = c.output_beats[FIRST];
        t.row_beats = s.has(C) || s.has(S) ? 0 : run.row_beats;
        t.load = run.latency + run.memory_start + run.memory_end;
        t.all = c.count[S] * c.count[K] * c.count[C];
        t.work = sums.blocks * sums.spaced * (run.batch * run.columns);
        const double idle = (sums.spaced - sum_over(c.vectors, c.count[C])) / c.count[C];
        t.overhead = t.all * (run.fixed_compute - idle + run.phase_change);
        t.first_beats = weights + parameters;
        t.leaving = c.output_beats[s.has(s.channels_loop()) ? LAST : FIRST], t.first_word = c.input_beats[FIRST];
        // Phases that load, by pixel tile and in all: see Structure::revisited.
        t.loads_by_tile = s.revisited == 0 ? t.all : s.revisited == 1 ? c.count[S] * c.count[C] : 0;
        t.loads_once = s.revisited == 2 ? t.all : 0;
        return t.lengths->least_beats < INF;
    }

    double bound(const Terms& t, double beats, double tiles, double bands, double first_load, double last, double overheads,
                 double start) const {
        const double array = (t.first_beats + t.first_word * first_load) * pace + t.load + t.work * bands + overheads;
        const double loading = tiles * t.loads_by_tile + t.loads_once;
        const double memory = (beats - last) * pace + loading * t.load + tiles * t.all * run.phase_change;
        return std::floor(std::max(array, memory) + (start + last * pace) - 1e-3);
    }

    struct Work {  // a structure's channel cut
        double bound, beats;
        int64_t smallest;
        int32_t number, m;
    };

    // At most the bound and the beats of each tiling of a channel cut: those of one with the least of every quantity. ``smallest``: a cell
    // that is no larger than theirs, so that they must be better than what is known there.
    void bound_all(const Terms& t, const Pixels& pixels, Work& work) const {
        double least[Pixels::VALUES];
        for (int value = 0; value < Pixels::VALUES; value++) least[value] = pixels.least[value][t.pixel_count - 1];
        const double first = least[Pixels::FIRST_PIXELS], tiles = least[Pixels::TILES];
        work.smallest = cell(t, t.need.inputs * pixels.of[Pixels::FRAME][0], t.need.outputs * first, t.need.sums * first);
        const double beats = t.moved.constant + t.moved.inputs * least[Pixels::LOADS] + t.moved.again * tiles;
        work.beats = beats + t.lengths->least_beats;
        const double overheads = t.overhead * (t.overhead < 0 ? pixels.most_tiles[t.pixel_count - 1] : tiles);
        // One less, because rounding may differ.
        work.bound = bound(t, beats, tiles, least[Pixels::BANDS], least[Pixels::FIRST_LOAD], t.leaving * least[Pixels::LAST_STORE],
                           overheads, t.lengths->least_start) - 1;
    }

    int64_t cell(const Terms& t, double inputs, double outputs, double sums) const {
        return level(INPUT, inputs) * strides[INPUT] + t.weight_cell + level(OUTPUT, outputs) * strides[OUTPUT]
            + level(PSUM, sums) * strides[PSUM];
    }
};

}  // namespace
