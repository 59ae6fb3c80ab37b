"""The accelerator: array, banks, drains, memory channel and sequencer, put together."""

from __future__ import annotations

from amaranth.hdl import Cat, Module, Mux, Signal, Value, unsigned
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from hdl.array import MacArray
from hdl.bank import Bank
from hdl.design import Design
from hdl.drain import DrainUnit, drain_cycles
from hdl.issue import IssueUnit
from hdl.keep import KeepUnit
from hdl.load import LoadUnit
from hdl.program import EXTERNAL_ADDRESS_BITS, LENGTH_BITS
from hdl.request import REQUEST, RequestUnit, StoreUnit
from hdl.sequencer import Evaluator, FieldFile

COUNTER_BITS = 48
COUNTERS = ("total", "issue", "memory", "drain_stall", "beats_read", "beats_written")


class Accelerator(wiring.Component):
    """Runs a program: a layer, tile after tile.

    The program is read whole, then phase follows phase: in each, memory stores one tile and loads another while the array computes
    the tile between them and the sequencer evaluates the tile after them. A phase ends when all are done. With chaining, a program may
    name the next one, which then begins without a new ``start``, and its stores may go to the input banks instead of memory.

    Parameters
    ----------
    design: the design point.

    Members
    -------
    start: taken in a cycle in which ``busy`` is 0, together with program_address (first beat) and program_beats.
    busy, done (strobe at the end), error (the program is of another version; nothing was run).
    request: bursts (:data:`hdl.request.REQUEST`), served in order. write_data, read_data: their beats; read data is always taken.
    issuing: an operand vector is issued in this cycle.
    counters: (if the design has them) since ``start``: cycles, cycles that issued a vector, cycles with memory work left, cycles that
    waited for the drains, beats.
    """

    def __init__(self, design: Design) -> None:
        self._design = design
        members = {
            "start": In(1),
            "program_address": In(EXTERNAL_ADDRESS_BITS),
            "program_beats": In(LENGTH_BITS),
            "busy": Out(1),
            "done": Out(1),
            "error": Out(1),
            "issuing": Out(1),
            "request": Out(stream.Signature(REQUEST)),
            "write_data": Out(stream.Signature(unsigned(design.bus_bits))),
            "read_data": In(stream.Signature(unsigned(design.bus_bits))),
        }
        if design.counters:
            members["counters"] = Out(wiring.Signature({name: Out(COUNTER_BITS) for name in COUNTERS}))
        super().__init__(members)

    def elaborate(self, platform: object) -> Module:
        m = Module()
        design = self._design
        m.submodules.evaluator = evaluator = Evaluator(design=design)
        m.submodules.fields = fields = FieldFile(design=design)
        m.submodules.requests = requests = RequestUnit(design=design)
        m.submodules.loader = loader = LoadUnit(design=design)
        m.submodules.storer = storer = StoreUnit(design=design)
        m.submodules.issue = issue = IssueUnit(design=design, drain_cycles=drain_cycles(design))
        m.submodules.array = array = MacArray(design=design)
        m.submodules.drain = drain = DrainUnit(design=design)

        m.d.comb += [
            fields.set_field.eq(evaluator.set_field), fields.set_data.eq(evaluator.set_data),
            requests.config.eq(fields.config), requests.load.eq(fields.load), requests.store.eq(fields.store),
            loader.config.eq(fields.config), loader.load.eq(fields.load), storer.store.eq(fields.store),
            issue.config.eq(fields.config), issue.tile.eq(fields.compute),
            drain.config.eq(fields.config), drain.tile.eq(fields.compute),
            evaluator.load_enable.eq(loader.program_enable), evaluator.load_word.eq(loader.program_word),
            evaluator.load_data.eq(loader.program_data),
            self.issuing.eq(issue.issuing),
        ]
        wiring.connect(m, wiring.flipped(self.request), requests.request)
        keeper = None
        if design.chaining:
            m.submodules.keeper = keeper = KeepUnit(design=design)
            m.d.comb += [keeper.config.eq(fields.config), keeper.store.eq(fields.store), keeper.last.eq(storer.last)]
            wiring.connect(m, storer.write_data, keeper.beats)
        wiring.connect(m, wiring.flipped(self.write_data), (keeper or storer).write_data)
        wiring.connect(m, wiring.flipped(self.read_data), loader.read_data)

        self._elaborate_phases(m, evaluator, fields, requests, loader, storer, keeper, issue, drain)
        self._elaborate_input(m, loader, keeper, issue, array)
        self._elaborate_weights(m, loader, issue, array)
        self._elaborate_output(m, loader, storer, drain)
        m.d.comb += [
            array.i_valid.eq(issue.o_valid), array.i_first.eq(issue.o_first), array.i_last.eq(issue.o_last),
            array.i_padding.eq(issue.o_padding),
            drain.i_last.eq(issue.o_valid & issue.o_last), drain.i_group.eq(issue.group),
            array.drain_step.eq(drain.drain_step), drain.i_results.eq(array.o_results),
        ]
        if design.is_xnor:
            m.d.comb += array.i_count.eq(issue.o_count)
        else:
            m.d.comb += [mine.eq(theirs) for mine, theirs in zip(array.i_columns, issue.o_columns, strict=True)]
            m.d.comb += [array.zero_point.eq(fields.config.zero_point), array.signed_activations.eq(fields.config.signed)]
        return m

    def _elaborate_phases(self, m: Module, evaluator: Evaluator, fields: FieldFile, requests: RequestUnit, loader: LoadUnit,
                          storer: StoreUnit, keeper: KeepUnit | None, issue: IssueUnit, drain: DrainUnit) -> None:
        """Program fetch, first evaluation, then the phases: ADVANCE hands the fields on, BEGIN starts the engines.

        A store on chip needs the input banks' write ports: what the phase loads begins with its last beat.
        """
        evaluating_next, loading, computing, storing = (Signal(name=f"has_{what}") for what in ("next", "load", "compute", "store"))
        compute_busy, begin = Signal(), Signal()
        program = (self.program_address, self.program_beats)
        transfer: Value = begin
        through_memory: Value = storing
        memory_busy = requests.busy | loader.busy | storer.busy
        config = fields.config
        if keeper is not None:
            keeps = storing & fields.store.store_output & config.store_on_chip
            m.d.comb += keeper.start.eq(begin & keeps)
            transfer, through_memory = begin & ~keeps | keeper.done, storing & ~config.store_on_chip
            memory_busy |= keeper.busy
            program = (Mux(self.busy, config.next_program_address, self.program_address),
                       Mux(self.busy, config.next_program_beats, self.program_beats))
        m.d.comb += [
            self.busy.eq(1),
            requests.program_address.eq(program[0]), requests.program_beats.eq(program[1]), loader.program_beats.eq(program[1]),
            requests.has_load.eq(loading), requests.has_store.eq(through_memory), loader.has_load.eq(loading),
            requests.start.eq(transfer), loader.start.eq(transfer), storer.start.eq(begin & storing & fields.store.store_output),
            issue.start.eq(begin & computing), drain.start.eq(begin & computing), evaluator.next.eq(begin & loading),
        ]
        with m.If(begin & computing):
            m.d.sync += compute_busy.eq(1)
        with m.Elif(drain.done):
            m.d.sync += compute_busy.eq(0)
        m.d.sync += self.done.eq(0)
        with m.FSM(name="phase"):
            with m.State("IDLE"):
                m.d.comb += self.busy.eq(0)
                with m.If(self.start):
                    m.d.comb += [requests.fetch.eq(1), loader.fetch.eq(1)]
                    m.d.sync += [loading.eq(0), computing.eq(0), storing.eq(0), self.error.eq(0)]
                    m.next = "FETCH"
            with m.State("FETCH"):
                with m.If(~loader.busy):
                    m.d.comb += evaluator.start.eq(1)
                    m.d.sync += evaluating_next.eq(1)
                    m.next = "EVALUATE"
            with m.State("EVALUATE"):
                with m.If(evaluator.wrong_version):
                    m.d.sync += [self.error.eq(1), self.done.eq(1)]
                    m.next = "IDLE"
                with m.Elif(~evaluator.busy):
                    m.next = "ADVANCE"
            with m.State("ADVANCE"):
                m.d.comb += fields.advance.eq(1)
                m.d.sync += [loading.eq(evaluating_next & ~evaluator.exhausted), computing.eq(loading), storing.eq(computing)]
                m.next = "BEGIN"
            with m.State("BEGIN"):
                m.d.comb += begin.eq(1)
                m.d.sync += evaluating_next.eq(loading)
                m.next = "RUN"
                with m.If(~(loading | computing | storing)):
                    m.d.sync += self.done.eq(1)
                    m.next = "IDLE"
                    if keeper is not None:
                        with m.If(config.next_program_beats != 0):
                            m.d.comb += [requests.fetch.eq(1), loader.fetch.eq(1)]
                            m.d.sync += self.done.eq(0)
                            m.next = "FETCH"
            with m.State("RUN"):
                with m.If(~(memory_busy | compute_busy | evaluator.busy)):
                    m.next = "ADVANCE"
        if self._design.counters:
            self._elaborate_counters(m, issue, memory_busy)

    def _elaborate_counters(self, m: Module, issue: IssueUnit, memory_busy: Value) -> None:
        events = {
            "total": self.busy, "issue": issue.issuing, "memory": memory_busy, "drain_stall": issue.stalled,
            "beats_read": self.read_data.valid & self.read_data.ready, "beats_written": self.write_data.valid & self.write_data.ready,
        }
        for name in COUNTERS:
            counter = getattr(self.counters, name)
            with m.If(self.start & ~self.busy):
                m.d.sync += counter.eq(0)
            with m.Elif(events[name]):
                m.d.sync += counter.eq(counter + 1)

    def _bank(self, kind: str) -> Bank:
        design = self._design
        return Bank(shape=design.bank_shape(kind), word_bits=design.word_bits(kind), slot_bits=design.word_slot_bits(kind),
                    words_per_entry=design.words_per_entry(kind))

    def _elaborate_input(self, m: Module, loader: LoadUnit, keeper: KeepUnit | None, issue: IssueUnit, array: MacArray) -> None:
        for lane in range(self._design.lanes):
            m.submodules[f"input_{lane}"] = bank = self._bank("input")
            enable, entry, data = loader.input_enable[lane], loader.input_entry[lane], loader.input_data
            if keeper is not None:  # never writes while the loader does
                enable = enable | keeper.input_enable[lane]
                entry = Mux(keeper.busy, keeper.input_entry[lane], entry)
                data = Mux(keeper.busy, keeper.input_data, data)
            m.d.comb += [
                bank.write_enable.eq(enable), bank.write_entry.eq(entry), bank.write_data.eq(data),
                bank.read_enable.eq(issue.input_enable[lane]), bank.read_word.eq(issue.input_word),
                array.activations[lane].eq(bank.read_data),
            ]

    def _elaborate_weights(self, m: Module, loader: LoadUnit, issue: IssueUnit, array: MacArray) -> None:
        for row in range(self._design.rows):
            m.submodules[f"weights_{row}"] = bank = self._bank("weight")
            m.d.comb += [
                bank.write_enable.eq(loader.weight_enable[row]), bank.write_entry.eq(loader.weight_entry),
                bank.write_data.eq(loader.weight_data),
                bank.read_enable.eq(issue.issuing), bank.read_word.eq(issue.weight_word),
                array.weights[row].eq(bank.read_data),
            ]

    def _elaborate_output(self, m: Module, loader: LoadUnit, storer: StoreUnit, drain: DrainUnit) -> None:
        design = self._design
        m.d.comb += [drain.parameter_write_enable.eq(loader.parameter_enable), drain.parameter_write_entry.eq(loader.parameter_entry),
                     drain.parameter_write_data.eq(loader.parameter_data)]
        beats = []
        for lane in range(design.lanes):
            m.submodules[f"output_{lane}"] = bank = Bank(shape=design.bank_shape("output"), word_bits=design.bus_bits)
            m.d.comb += [
                bank.write_enable.eq(drain.write_enable[lane]), bank.write_entry.eq(drain.write_entry[lane]),
                bank.write_data.eq(drain.write_data[lane]),
                bank.read_enable.eq(storer.read_enable[lane]), bank.read_word.eq(storer.read_entry),
            ]
            beats.append(bank.read_data)
        m.d.comb += storer.read_data.eq(Cat(beats))
