# Part of _core.pyx: whole lines of text from a decoder's refs.
from ftbuf._clines cimport *


cdef class Texts:
    """Pieces of text in one block: what a line plan points into."""

    cdef bytearray block

    def __cinit__(self):
        self.block = bytearray()

    cdef ftb_piece place(self, bytes text) except *:
        cdef ftb_piece piece
        piece.offset, piece.size = len(self.block), len(text)
        self.block += text
        return piece

    cdef ftb_piece *place_all(self, texts) except NULL:
        cdef ftb_piece *pieces = <ftb_piece *>allocate(len(texts), sizeof(ftb_piece))
        for i, text in enumerate(texts):
            pieces[i] = self.place(text)
        return pieces


@cython.final
cdef class LineWriter:
    """Iterates over chunks of text: a line for each record of `records`, in the order of its merge.

    Parameters
    ----------
    records : Records
    renderer : Renderer, with the fallback's own: what it keeps between records is one
    columns : list of (op, width, text), ops as in ftbuf/report/lineplan.py
    flags, preempt : 256 texts each, by common_flags and common_preempt_count
    labels : texts by buffer
    names : by slot, what an event-name column prints
    comms : (int32 array pid -> code, texts by code)
    tgids : int32 array by pid, 0: not known
    places : (offset, width) of common_pid, common_flags and common_preempt_count
    program_of : slot -> Program, or None for events that only the fallback can print
    fallback : (record, time of the line before, or of the record after where a column needs it, number of the line) -> text of
        lines that C leaves: the first of each stream, those after losses, damaged ones (with a graph, also whether it is known which
        record is the return that a call is drawn with, and that record or None); or (text, how many lines it is, time of the last, whether it needs the next record)
    calls : by slot, None or (enum ftb_line_call_kind, places of the function and the depth); program_of gives two programs for
        returns: their own, and that of a call and its return in one line
    graph : (how many columns lines of calls have, addresses that functions of interrupts begin and end at), for the kernel's graph
    """

    cdef Records records
    cdef Renderer renderer
    cdef ftb_line_plan plan
    cdef ftb_line_state state
    cdef uint8_t *begun
    cdef ftb_text text
    cdef Texts texts
    cdef const ftb_program **bodies
    cdef list programs, keep
    cdef readonly bytearray known  # by stream, a row of ftb_drawn_cpu, which the fallback may change
    cdef object program_of, fallback
    cdef size_t enough
    cdef ftb_line_call *calls
    cdef bint waits         # the fallback has a call whose line depends on the record after

    def __cinit__(self, Records records not None, Renderer renderer not None, columns, flags, preempt, labels, names, comms, tgids,
                  places, program_of, fallback, *, bint big_endian, int64_t start=0, size_t max_line=0, size_t enough=1 << 16,
                  calls=None, graph=None):
        self.records, self.renderer, self.program_of, self.fallback, self.enough = records, renderer, program_of, fallback, enough
        self.texts, self.keep = Texts(), []
        self.begun = <uint8_t *>allocate(records.decoder.d.merge.n_streams, 1)
        self.state.begun = self.begun
        self.set_columns(columns)
        if len(flags) != 256 or len(preempt) != 256:
            raise ValueError("one text for each value of a byte")
        self.plan.flags, self.plan.preempt = self.texts.place_all(flags), self.texts.place_all(preempt)
        self.plan.labels, self.plan.n_labels = self.texts.place_all(labels), len(labels)
        self.plan.names, self.plan.n_slots = self.texts.place_all(names), len(names)
        self.set_tasks(comms, tgids)
        self.plan.pid.offset, self.plan.pid.width = places[0]
        self.plan.common_flags.offset, self.plan.common_flags.width = places[1]
        self.plan.preempt_count.offset, self.plan.preempt_count.width = places[2]
        self.plan.big_endian, self.plan.start, self.plan.max_line = big_endian, start, max_line
        self.programs = [None] * len(names)
        self.bodies = <const ftb_program **>allocate(len(names), sizeof(void *))
        self.plan.bodies = self.bodies
        if calls is not None:
            self.set_calls(calls)
        if graph is not None:
            self.set_graph(graph[0], graph[1], graph[2])
        self.texts.block += bytes(FTB_SLACK)
        self.plan.texts = <const char *>self.texts.block
        longest = max(map(len, [*(c[2] for c in columns), *flags, *preempt, *labels, *names, *comms[1], b""]))
        self.plan.room = sum(c[1] + 2 * longest + 64 for c in columns) + 2 * FTB_SLACK
        if not ftb_line_plan_prepare(&self.plan):
            raise ValueError("no such column")
        self.state.heads = <ftb_line_head *>allocate(records.decoder.d.merge.n_streams, sizeof(ftb_line_head))
        self.state.head_texts = <char *>allocate(records.decoder.d.merge.n_streams, self.plan.head_room)

    cdef void set_columns(self, columns) except *:
        cdef ftb_line_column *c = <ftb_line_column *>allocate(len(columns), sizeof(ftb_line_column))
        self.plan.columns, self.plan.n_columns = c, len(columns)
        for i, (op, width, text) in enumerate(columns):
            c[i].op, c[i].width, c[i].text = op, width, self.texts.place(text)

    cdef void set_calls(self, calls) except *:
        if len(calls) != self.plan.n_slots:
            raise ValueError("calls are one per slot")
        self.calls = <ftb_line_call *>allocate(len(calls), sizeof(ftb_line_call))
        self.plan.calls = self.calls
        for i, call in enumerate(calls):
            if call is not None:
                self.calls[i].kind, func, depth = call
                self.calls[i].func.offset, self.calls[i].func.width = func
                self.calls[i].depth.offset, self.calls[i].depth.width = depth

    cdef void set_graph(self, uint32_t n_call, uint64_t irq_low, uint64_t irq_high) except *:
        cdef uint32_t i, n = self.records.decoder.d.merge.n_streams
        if not self.calls or not 0 < n_call <= self.plan.n_columns or self.plan.columns[n_call - 1].op != FTB_LINE_BODY:
            raise ValueError("a graph has calls, whose lines end with the body")
        self.known = bytearray(n * sizeof(ftb_drawn_cpu))
        cdef Pages memory = Pages(self.known)
        self.keep.append(memory)
        self.plan.n_call, self.plan.irq_low, self.plan.irq_high = n_call, irq_low, irq_high
        self.state.cpus = <ftb_drawn_cpu *>memory.view.buf
        for i in range(n):
            self.state.cpus[i].pid = self.state.cpus[i].irq_depth = -1

    @property
    def cpus(self):
        """The CPU of each stream."""
        return [s.cpu for s in self.records.decoder.d.merge.streams[:self.records.decoder.d.merge.n_streams]]

    cdef void set_tasks(self, comms, tgids) except *:
        cdef Pages codes = Pages(comms[0]), groups = Pages(tgids)
        self.keep += [codes, groups]
        if codes.view.len and not 0 <= max(memoryview(comms[0])) < len(comms[1]):
            raise ValueError("a task's code without a name")
        self.plan.comms = self.texts.place_all(comms[1])
        self.plan.code_of_pid, self.plan.n_pids = <const int32_t *>codes.view.buf, codes.view.len // 4
        self.plan.tgid_of_pid, self.plan.n_tgids = <const int32_t *>groups.view.buf, groups.view.len // 4

    def __dealloc__(self):
        ftb_text_free(&self.text)
        PyMem_Free(self.begun)
        PyMem_Free(self.state.heads)
        PyMem_Free(self.state.head_texts)
        PyMem_Free(self.bodies)
        PyMem_Free(self.calls)
        for p in (<size_t>self.plan.columns, <size_t>self.plan.flags, <size_t>self.plan.preempt, <size_t>self.plan.labels,
                  <size_t>self.plan.names, <size_t>self.plan.comms):
            PyMem_Free(<void *><size_t>p)

    @property
    def lines(self):
        """How many records have their line so far."""
        return self.state.index

    def __iter__(self):
        return self

    def __next__(self):
        cdef ftb_batch *b = self.records.decoder.d.batch
        self.text.len = 0
        while self.text.len < self.enough and (self.records.pos < b.n or self.records.refill()):
            if not self.waits:
                self.render(b)
            elif self.state.drawn[self.records.pos]:
                self.state.drawn[self.records.pos] = 0
                self.records.pos += 1
                continue
            if self.records.pos < b.n and self.text.len < self.enough and (not self.learn(ftb_slot(b, self.records.pos)) or self.waits):
                self.fall_back(b, b.ts[self.records.pos], ftb_stream_index(b, self.records.pos))
        if not self.text.len:
            raise StopIteration
        return PyBytes_FromStringAndSize(self.text.data, self.text.len)

    cdef int render(self, ftb_batch *b) except -1:
        with nogil:
            self.records.pos = ftb_render_lines(&self.plan, &self.state, &self.renderer.context, self.records.decoder.d.merge.streams, b,
                                                self.records.pos, self.enough, &self.text)
        if self.text.status == FTB_NO_MEMORY:
            raise MemoryError
        return 0

    cdef bint learn(self, uint16_t slot) except -1:
        """Ask for the program of an event when its first record is met; whether there is one now that was not before."""
        cdef Program program, leaf
        if self.programs[slot] is not None:
            return False
        found = self.program_of(slot)
        self.programs[slot] = found if found is not None else False
        if found is None:
            return False
        if isinstance(found, tuple):
            found, leaf = found
            self.calls[slot].leaf = &leaf.program
        program = found
        self.bodies[slot] = &program.program
        return True

    cdef int64_t neighbour(self, ftb_batch *b, int64_t ts) except? -1:
        """The time that the fallback is given: of the record after, where lines tell of it, else of the line before."""
        if not self.plan.needs_next:
            return self.state.previous
        return b.ts[self.records.pos] if self.records.pos < b.n or self.records.refill() else ts

    cdef int fall_back(self, ftb_batch *b, int64_t ts, uint32_t stream) except -1:
        cdef uint32_t at = self.records.pos, found = ftb_line_return_of(&self.plan, &self.state, b, at) if self.plan.n_call else at
        record = next(self.records)
        if self.plan.n_call:
            leaf = self.records.at(b, found) if at < found < b.n else None
            if leaf is not None:
                self.state.drawn[found] = 1
            answer = self.fallback(record, self.state.previous, self.state.index, found < b.n, leaf)
        else:
            answer = self.fallback(record, self.neighbour(b, ts), self.state.index)
        cdef bytes line
        if isinstance(answer, tuple):
            line, lines, self.state.previous, self.waits = answer
            self.state.index += <uint64_t>lines
        else:
            line = answer
            self.state.previous = ts
            self.state.index += 1
        if ftb_text_append(&self.text, line, len(line)) != FTB_OK:
            raise MemoryError
        self.begun[stream] = 1
        return 0
