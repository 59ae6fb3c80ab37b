// What the compiled search and the compiled grids compute with: the tables that kernel.py fills, and the exact quantities of a tiling.
// Formulas are those of factors.py and closed_form.py, which say more about each.
//
// All quantities are whole numbers below 2**53, which doubles hold exactly; quotients are rounded as NumPy rounds them. So results equal
// NumPy's bit for bit (compile without -ffast-math, and with -ffp-contract=off).

#pragma once

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

// The exact quantities of tilings, but for the structure and its programs.
struct Model {
    Constants run;
    const Channel* channels;
    const Cut *ys, *xs;
    int64_t channel_count, y_count, x_count;

    // -- entries of the banks ------------------------------------------------------------------------------------------------

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

    // -- beats ---------------------------------------------------------------------------------------------------------------

    // Of a channel cut, over all of its tiles; no structure matters.
    struct Sums {
        double stored, inputs, weights, parameters, blocks, spaced;
    };

    Sums sums(const Channel& c) const {
        const bool k_tiled = c.count[K] > 1, c_tiled = c.count[C] > 1;
        const double groups = sum_over(c.groups, c.count[S]), outputs = run.batch * run.rows * run.columns;
        double spaced[4];
        for (int at = 0; at < 4; at++) spaced[at] = std::max(c.vectors[at], run.drain);
        return {sum_over(c.output_beats, c.count[k_tiled ? K : S]) * ((k_tiled ? c.count[S] : 1) * outputs),
                c_tiled ? sum_over(c.input_beats, c.count[C]) * c.count[S] : sum_over(c.input_beats, c.count[S]),
                groups * sum_over(c.records, c.count[K]) * sum_over(c.runs, c.count[C]),
                groups * sum_over(c.channels, c.count[K]) * run.parameter_beats, groups * sum_over(c.blocks, c.count[K]) * run.passes,
                sum_over(spaced, c.count[C])};
    }

    // The beats that do not depend on pixels, and those that do: const + inputs * loads + again * tiles.
    struct Beats {
        double constant, inputs, again;
    };

    Beats beats(const Structure& s, const Channel& c, const Sums& sums) const {
        Beats result = {sums.stored, s.inputs_by_k ? sums.inputs * c.count[K] : sums.inputs, 0};
        (s.weights_again ? result.again : result.constant) += sums.weights;
        (s.parameters_again ? result.again : result.constant) += sums.parameters;
        return result;
    }

    double before(const Program& program) const {
        double fetch = std::ceil(program.beats * run.den / run.num) + run.latency;
        return run.before + fetch + run.instruction * program.first;
    }

    // -- exact cycles --------------------------------------------------------------------------------------------------------

    double cycles(const Structure& s, const Channel& c, const Cut& y, const Cut& x, const Program& shape) const {
        const double fixed = run.memory_start + run.latency + run.memory_end;
        const double evaluation = run.evaluation + run.instruction * shape.tile - fixed;
        double memory[192], limit[40], factor[LOOPS * FACTORS];
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
};

}  // namespace
