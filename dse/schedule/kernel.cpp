// The entry points of the compiled search and of the compiled grids, as kernel.py calls them.

#include "kernel_grid.h"
#include "kernel_search.h"

namespace {

static_assert(sizeof(Constants) == 21 * sizeof(double) && sizeof(Channel) == 43 * sizeof(double) && sizeof(Cut) == 18 * sizeof(double)
              && sizeof(Structure) == 11 * 4 && sizeof(Moved) == 15 * 4 && sizeof(Limit) == 7 * 4, "as kernel.py lays them out");

void set(Model& model, const double* constants, const int64_t* counts, const double* channels, const double* ys, const double* xs) {
    model.run = *reinterpret_cast<const Constants*>(constants);
    model.channels = reinterpret_cast<const Channel*>(channels);
    model.ys = reinterpret_cast<const Cut*>(ys);
    model.xs = reinterpret_cast<const Cut*>(xs);
    model.channel_count = counts[0], model.y_count = counts[1], model.x_count = counts[2];
}

Search make(const double* constants, const int64_t* sizes, const double* channels, const double* ys, const double* xs,
            const int32_t* const* structures, const double* const* programs) {
    Search search;
    set(search, constants, sizes + 1, channels, ys, xs);
    search.objective = Objective(sizes[0]);
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

// ``counts``: channel cuts, row cuts, column cuts, all of one structure.
extern "C" void nearmac_grid(const double* constants, const int64_t* counts, const double* channels, const double* ys, const double* xs,
                             const int32_t* structure, const double* programs, double* cycles, double* read, double* written) {
    Grid grid;
    set(grid, constants, counts, channels, ys, xs);
    grid.structure = reinterpret_cast<const Structure*>(structure);
    grid.programs = reinterpret_cast<const Program*>(programs);
    grid.evaluate_all(cycles, read, written);
}
