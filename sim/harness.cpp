// The run loop around a verilated accelerator: reset, external memory, statistics, waveform window.
// One call simulates a whole run; the caller may watch and cancel it from another thread.
//
// Macros: NEARMAC_BUS_BITS (16, 32, 64, 128 or 256), NEARMAC_COUNTERS (0 or 1), NEARMAC_TRACE (0 or 1).
// The memory model is that of sim/memory.py, cycle for cycle; the structs are mirrored in sim/verilator_engine.py.

#include <cerrno>
#include <cstdint>
#include <cstring>

#include "Vaccelerator.h"
#include "Vaccelerator___024root.h"
#include "verilated.h"
#if NEARMAC_TRACE
#include "verilated_vcd_c.h"
#endif

static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "the memory image and the wide ports are little-endian");

// Verilator spells the "__" of a port name "___05F".
#define PORT(group, member) group##___05F##member

namespace {

constexpr uint64_t beat_bytes = NEARMAC_BUS_BITS / 8;
constexpr unsigned queue_bursts = 8;
constexpr uint64_t control_interval_cycles = 4096;  // how often progress is published and cancel is read
constexpr uint64_t picoseconds_per_cycle = 10'000;

enum Stop : int32_t { done, max_cycles_reached, error_port, cancelled, bad_burst, vcd_not_written };

struct Burst {
    uint64_t address, length;
    bool write;
};

inline uint32_t xorshift32(uint32_t x) {
    x ^= x << 13;
    x ^= x >> 17;
    return x ^ (x << 5);
}

class Memory {
public:
    Memory(uint8_t* image, uint64_t image_beats, uint64_t latency, uint64_t num, uint64_t den, uint32_t stall_state)
        : image_beats(image_beats), image_(image), latency_(latency), num_(num), den_(den),
          random_(stall_state ? xorshift32(stall_state) : 0) {
        update_outputs();
    }

    bool request_ready, read_valid, write_ready;  // outputs of the current cycle
    uint64_t beats_read = 0, beats_written = 0;
    const uint64_t image_beats;

    unsigned queued() const { return count_; }
    const uint8_t* read_beat() const { return image_ + queue_[first_].address * beat_bytes; }
    uint8_t* write_beat() { return image_ + queue_[first_].address * beat_bytes; }

    // The clock edge; `request` is null when none is accepted.
    void step(bool transfer, const Burst* request) {
        const bool was_empty = count_ == 0;
        if (!was_empty) {
            if (wait_) {
                --wait_;
            } else if (transfer) {
                credit_ += num_ - den_;
            } else {
                credit_ = credit_ + num_ < den_ ? credit_ + num_ : den_;
            }
        }
        if (transfer) {
            Burst& head = queue_[first_];
            ++(head.write ? beats_written : beats_read);
            ++head.address;
            if (--head.length == 0) {
                first_ = (first_ + 1) % queue_bursts;
                --count_;
            }
        }
        if (request) {
            queue_[(first_ + count_++) % queue_bursts] = *request;
            if (was_empty) {
                wait_ = latency_;
                credit_ = 0;
            }
        }
        if (random_) random_ = xorshift32(random_);
        update_outputs();
    }

private:
    void update_outputs() {
        bool grant = count_ && !wait_ && credit_ + num_ >= den_;
        request_ready = count_ < queue_bursts;
        if (random_) {
            grant = grant && (random_ & 3);
            request_ready = request_ready && (random_ >> 2 & 7);
        }
        write_ready = grant && queue_[first_].write;
        read_valid = grant && !write_ready;
    }

    uint8_t* const image_;
    const uint64_t latency_, num_, den_;
    Burst queue_[queue_bursts] = {};
    unsigned first_ = 0, count_ = 0;
    uint64_t wait_ = 0, credit_ = 0;
    uint32_t random_;
};

// The ports are registers, so nothing needs the model while the clock is low: where its edge detector can be set back by hand, that
// half is not evaluated at all (which makes a run a third faster).
template <class Root>
auto rearm(Root* root, int) -> decltype(root->__Vtrigprevexpr___TOP__clk__0, true) {
    root->__Vtrigprevexpr___TOP__clk__0 = 0;
    return true;
}
template <class Root>
bool rearm(Root*, long) {
    return false;
}

#if NEARMAC_TRACE
// A waveform file that remembers a failed write (a full disk) instead of ending the process in the middle of it.
class CheckedFile : public VerilatedVcdFile {
public:
    int error = 0;  // errno of the write that failed
    ssize_t write(const char* data, ssize_t length) override {
        for (ssize_t done = 0; done < length && !error;) {
            errno = 0;
            const ssize_t got = VerilatedVcdFile::write(data + done, length - done);
            if (got <= 0) error = errno ? errno : EIO;
            done += got;
        }
        return length;
    }
};
#endif

// Half a clock period a call; the waveform file is open only inside its window.
class Clocked {
public:
    Clocked() : top(new Vaccelerator{&context_, "TOP"}) {}
    ~Clocked() {
        close_vcd();
        top->final();
        delete top;
    }
    Clocked(const Clocked&) = delete;

    bool open_vcd(const char* path) {
#if NEARMAC_TRACE
        context_.traceEverOn(true);
        top->trace(&vcd_, 99);
        vcd_.set_time_unit("1ps");
        vcd_.set_time_resolution("1ps");
        vcd_.open(path);
        return vcd_.isOpen();
#else
        (void)path;
        return false;
#endif
    }
    void close_vcd() {
#if NEARMAC_TRACE
        if (vcd_.isOpen()) vcd_.close();
        tracing = false;
#endif
    }
    // 0 when everything given to the file so far is in it, else the errno that says why not.
    int vcd_error() const {
#if NEARMAC_TRACE
        return file_.error;
#else
        return 0;
#endif
    }
    void half(bool high) {
        top->clk = high;
        if (NEARMAC_TRACE || high || !settled_ || !rearm(top->rootp, 0)) top->eval();
        settled_ = settled_ || high;
#if NEARMAC_TRACE
        if (tracing) vcd_.dump(time_ps_);
        time_ps_ += picoseconds_per_cycle / 2;
#endif
    }

private:
    bool settled_ = false;  // the model was evaluated once with each level of the clock
    VerilatedContext context_;  // before `top`, which refers to it until its end
#if NEARMAC_TRACE
    CheckedFile file_;
    VerilatedVcdC vcd_{&file_};
    uint64_t time_ps_ = 0;
#endif

public:
    Vaccelerator* const top;
    bool tracing = false;
};

}  // namespace

extern "C" {

struct Setup {
    uint8_t* image;
    uint64_t image_beats, program_address, program_beats, latency_cycles, num, den, stall_state, max_cycles;
    const char* vcd_path;  // null: no waveform
    uint64_t vcd_start, vcd_stop, reset_cycles;
};

struct Outcome {
    int32_t stop, started, busy, queued, vcd_error;
    uint64_t cycle, done_cycle, write_end, beats_read, beats_written, issue_cycles, burst_address, burst_length;
    uint64_t counters[6];
};

struct Control {
    volatile uint64_t cycle;   // progress, for the watcher
    volatile int32_t cancel;   // set by the watcher
};

__attribute__((visibility("default"))) void nearmac_run(const Setup* setup, Outcome* out, Control* control) {
    Clocked clocked;
    Vaccelerator* const top = clocked.top;
    Memory memory(setup->image, setup->image_beats, setup->latency_cycles, setup->num, setup->den,
                  static_cast<uint32_t>(setup->stall_state));
    std::memset(out, 0, sizeof *out);
    if (setup->vcd_path && !clocked.open_vcd(setup->vcd_path)) {
        out->stop = vcd_not_written;
        out->vcd_error = errno;
        return;
    }
    clocked.tracing = setup->vcd_path && setup->vcd_start == 0;
    top->program_address = setup->program_address;
    top->program_beats = setup->program_beats;
    top->rst = 1;
    for (uint64_t i = 0; i < setup->reset_cycles; ++i) {
        clocked.half(false);
        clocked.half(true);
    }
    top->rst = 0;
    top->start = 1;

    bool started = false, finished = false, busy = false;
    uint64_t cycle = 0, waited = 0;
    for (;;) {
        if (cycle % control_interval_cycles == 0) {
            control->cycle = cycle;
            if (clocked.vcd_error()) break;
            if (control->cancel) {
                out->stop = cancelled;
                break;
            }
        }
        if (NEARMAC_TRACE && setup->vcd_path) {
            if (cycle == setup->vcd_stop) clocked.close_vcd();
            else if (cycle == setup->vcd_start) clocked.tracing = true;
        }
        top->PORT(request, ready) = memory.request_ready;
        top->PORT(read_data, valid) = memory.read_valid;
        top->PORT(write_data, ready) = memory.write_ready;
        if (memory.read_valid) std::memcpy(&top->PORT(read_data, payload), memory.read_beat(), beat_bytes);
        clocked.half(false);

        busy = top->busy;
        started = started || !busy;
        const bool write = memory.write_ready && top->PORT(write_data, valid);
        if (write) {
            std::memcpy(memory.write_beat(), &top->PORT(write_data, payload), beat_bytes);
            out->write_end = cycle + 1;
        }
        const bool transfer = write || (memory.read_valid && top->PORT(read_data, ready));
        out->issue_cycles += top->issuing && started;
        if (memory.request_ready && top->PORT(request, valid)) {
            const uint64_t payload = top->PORT(request, payload);
            const Burst burst{payload & 0xFFFFFFF, payload >> 28 & 0xFFFF, (payload >> 44 & 1) != 0};
            if (burst.length == 0 || burst.address + burst.length > memory.image_beats) {
                out->burst_address = burst.address;
                out->burst_length = burst.length;
                out->stop = bad_burst;
                break;
            }
            memory.step(transfer, &burst);
        } else {
            memory.step(transfer, nullptr);
        }
        if (top->error && started) {
            out->stop = error_port;
            break;
        }
        if (top->done && started && cycle && !finished) {
            finished = true;
            out->done_cycle = cycle;
        }
        clocked.half(true);
        if (started) {
            top->start = 0;
            ++cycle;
        }
        if (finished && memory.queued() == 0) break;
        if ((started ? cycle : ++waited) >= setup->max_cycles) {
            out->stop = max_cycles_reached;
            break;
        }
    }
    clocked.half(false);  // settle after the last edge
    clocked.close_vcd();
    out->vcd_error = clocked.vcd_error();
    if (out->vcd_error) out->stop = vcd_not_written;
#if NEARMAC_COUNTERS
    out->counters[0] = top->PORT(counters, total);
    out->counters[1] = top->PORT(counters, issue);
    out->counters[2] = top->PORT(counters, memory);
    out->counters[3] = top->PORT(counters, drain_stall);
    out->counters[4] = top->PORT(counters, beats_read);
    out->counters[5] = top->PORT(counters, beats_written);
#endif
    out->started = started;
    out->busy = busy;
    out->queued = memory.queued();
    out->cycle = cycle;
    out->beats_read = memory.beats_read;
    out->beats_written = memory.beats_written;
    control->cycle = cycle;
}

}  // extern "C"
