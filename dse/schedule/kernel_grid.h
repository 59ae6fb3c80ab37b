// Exact cycles and beats of a whole grid: every channel cut with every row and column cut of one structure. See ClosedForm.

#pragma once

#include "kernel_model.h"

namespace {

constexpr int SIDE = 32;  // row and column cuts that are computed side by side: several fit a processor's vector

// What depends on the row and column cuts alone, of SIDE of them.
struct Plane {
    double loads[16][SIDE], outputs[16][SIDE], bands[16][SIDE];  // of a tile, by class of its row and column: 4 * y + x
    double factors[(FACTORS + 1) * (FACTORS + 1)][SIDE];         // how often, by factors of rows and columns; the first is 1
    double tiles[SIDE], load_sum[SIDE], last[SIDE];
    int32_t code[SIDE];
};

struct Grid : Model {
    const Structure* structure;
    const Program* programs;

    struct Term { int rows_columns, count, factors[4]; };
    struct Kind { int moves, waits; std::vector<Term> terms; };
    std::vector<Kind> kinds;

    // The structure's kinds of phases, their factors sorted by what they depend on.
    void read_kinds() {
        const int32_t* at = structure->kinds();
        for (int number = 0; number < structure->kind_count; number++) {
            Kind kind = {at[0], at[1], {}};
            const int terms = at[2];
            at += 3;
            for (int term = 0; term < terms; term++) {
                Term each = {0, 0, {}};
                for (int factors = *at++; factors > 0; factors--, at++) {
                    const int loop = *at / FACTORS, factor = *at % FACTORS + 1;
                    if (loop == Y) each.rows_columns += factor * (FACTORS + 1);
                    else if (loop == X) each.rows_columns += factor;
                    else each.factors[each.count++] = *at;
                }
                kind.terms.push_back(each);
            }
            kinds.push_back(kind);
        }
    }

    static void count_factors(double n, double factors[FACTORS]) {
        factors[REST] = n - 1, factors[INNER] = n - 2, factors[TAIL] = std::max(n - 3, 0.0), factors[THREE] = n > 2;
    }

    // The cuts from ``first`` on, in the order of rows, then columns; the last one again where there are no more.
    void fill(Plane& plane, int64_t first) const {
        for (int i = 0; i < SIDE; i++) {
            const int64_t at = std::min(first + i, y_count * x_count - 1);
            const Cut &y = ys[at / x_count], &x = xs[at % x_count];
            for (int a = 0; a < 4; a++)
                for (int b = 0; b < 4; b++) {
                    plane.loads[4 * a + b][i] = y.load[a] * x.load[b];
                    plane.outputs[4 * a + b][i] = y.outputs[a] * x.outputs[b];
                    plane.bands[4 * a + b][i] = y.band[a] * x.outputs[b];
                }
            double rows[FACTORS + 1] = {1}, columns[FACTORS + 1] = {1};
            count_factors(y.count, rows + 1);
            count_factors(x.count, columns + 1);
            for (int a = 0; a <= FACTORS; a++)
                for (int b = 0; b <= FACTORS; b++) plane.factors[a * (FACTORS + 1) + b][i] = rows[a] * columns[b];
            plane.tiles[i] = run.batch * (y.count * x.count);
            plane.load_sum[i] = run.batch * (y.load_sum * x.load_sum);
            plane.last[i] = y.outputs[structure->has(Y) ? LAST : FIRST] * x.outputs[structure->has(X) ? LAST : FIRST];
            plane.code[i] = int32_t(y.code * 4 + x.code);
        }
    }

    // Cycles in which so many beats move: ceil(beats * den / num), without a division.
    double moved(double beats, double inverse) const {
        const double scaled = beats * run.den, whole = std::ceil(scaled * inverse), less = whole - 1;
        const double high = less * run.num >= scaled ? less : whole;  // the product is off by less than one
        return high * run.num < scaled ? high + 1 : high;
    }

    static double larger(double a, double b) { return a > b ? a : b; }

    // Of one channel cut and ``count`` cuts of rows and columns: cycles, and beats read.
    void evaluate(int count, const Channel& c, const Plane& plane, double cycles[SIDE], double read[SIDE]) const {
        const Structure& s = *structure;
        const double fixed = run.memory_start + run.latency + run.memory_end, inverse = 1 / run.num;
        const Program* shape = programs + int(c.code) * 16;
        double memory[192][SIDE], limit[40][SIDE], evaluation[SIDE], total[SIDE], channel_factors[4 * FACTORS];
        const Sums sums = this->sums(c);
        const Beats beats = this->beats(s, c, sums);
        const double all = c.count[S] * c.count[K] * c.count[C];
        const double leaving = c.output_beats[s.has(s.channels_loop()) ? LAST : FIRST];
        for (int i = 0; i < count; i++) {
            const Program& program = shape[plane.code[i]];
            evaluation[i] = run.evaluation + run.instruction * program.tile - fixed;
            const double last = moved(leaving * plane.last[i], inverse) + run.latency;
            const double fetch = moved(program.beats, inverse) + run.latency;
            total[i] = run.before + fetch + run.instruction * program.first + (run.memory_start + last + 1)
                + (run.phase_change + fixed) * (all * plane.tiles[i] + 1);
            read[i] = beats.constant + beats.inputs * plane.load_sum[i] + beats.again * plane.tiles[i] - sums.stored + program.beats;
        }
        for (int at = 0; at < s.moved_count; at++) {
            const Moved& key = s.moved()[at];
            double constant = 0;
            if (key.weights) constant += c.groups[key.ws] * c.records[key.wk] * c.runs[key.wc];
            if (key.parameters) constant += c.groups[key.ps] * c.channels[key.pk] * run.parameter_beats;
            const double loaded = key.inputs ? c.input_beats[key.ic] : 0, left = key.stored ? c.output_beats[key.oc] : 0;
            const double *loads = plane.loads[4 * key.iy + key.ix], *outputs = plane.outputs[4 * key.oy + key.ox];
            for (int i = 0; i < count; i++) memory[at][i] = moved(constant + loads[i] * loaded + outputs[i] * left, inverse);
        }
        for (int at = 0; at < s.limit_count; at++) {
            const Limit& key = s.limits()[at];
            const double vectors = c.vectors[key.c], spaced = std::max(vectors, run.drain);
            const double per_pixel = c.groups[key.s] * c.blocks[key.k] * (run.passes * spaced);
            const double rest = run.fixed_compute + vectors - spaced - fixed;
            const double* bands = plane.bands[4 * key.y + key.x];
            if (!key.computes) std::copy(evaluation, evaluation + count, limit[at]);
            else if (key.evaluates) for (int i = 0; i < count; i++) limit[at][i] = larger(bands[i] * per_pixel + rest, evaluation[i]);
            else for (int i = 0; i < count; i++) limit[at][i] = bands[i] * per_pixel + rest;
        }
        for (int loop : {S, K, C}) count_factors(c.count[loop], channel_factors + loop * FACTORS);
        count_factors(run.batch, channel_factors + B * FACTORS);
        for (const Kind& kind : kinds) {
            const double* __restrict waits = limit[kind.waits];
            const double* __restrict moves = kind.moves < 0 ? waits : memory[kind.moves];
            for (const Term& term : kind.terms) {
                double times = 1;
                for (int factor = 0; factor < term.count; factor++) times *= channel_factors[term.factors[factor]];
                const double* __restrict factors = plane.factors[term.rows_columns];
                for (int i = 0; i < count; i++) total[i] += times * factors[i] * larger(moves[i], waits[i]);
            }
        }
        std::copy(total, total + count, cycles);
    }

    // ``cycles``, ``read``: by channel, row and column cut; ``written``: by channel cut.
    void evaluate_all(double* cycles, double* read, double* written) {
        read_kinds();
        const int64_t pixels = y_count * x_count;
        Plane plane;
        double some_cycles[SIDE], some_read[SIDE];
        for (int64_t m = 0; m < channel_count; m++) written[m] = sums(channels[m]).stored;
        for (int64_t first = 0; first < pixels; first += SIDE) {
            fill(plane, first);
            const int64_t count = std::min<int64_t>(SIDE, pixels - first);
            for (int64_t m = 0; m < channel_count; m++) {
                evaluate(int(count + 3) & ~3, channels[m], plane, some_cycles, some_read);
                std::copy(some_cycles, some_cycles + count, cycles + m * pixels + first);
                std::copy(some_read, some_read + count, read + m * pixels + first);
            }
        }
    }
};

}  // namespace
