"""The boundary between Python and the C core: converts, owns memory, releases the GIL. No algorithm lives here."""
cimport cython
from cpython.buffer cimport PyBUF_CONTIG_RO, PyBuffer_FillInfo, PyBuffer_Release, PyObject_GetBuffer
from cpython.bytes cimport PyBytes_FromStringAndSize
from cpython.mem cimport PyMem_Calloc, PyMem_Free
from cpython.unicode cimport PyUnicode_DecodeUTF8
from libc.stdint cimport INT64_MAX, INT64_MIN, int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t
from libc.string cimport memchr, memset

from ftbuf._csrc cimport *

OK = FTB_OK
NEED_SEGMENT = FTB_NEED_SEGMENT
DONE = FTB_DONE
BATCH = FTB_BATCH
NO_SLOT = FTB_NO_SLOT
N_IDS = FTB_N_IDS
NO_PLAN = FTB_NO_PLAN
NEW_PLAN = FTB_NEW_PLAN
NEED_PLAN = FTB_NEED_PLAN
MAX_STREAMS = FTB_MAX_STREAMS
OP_TS, OP_CPU, OP_BUFFER, OP_SLOT, OP_COMM = FTB_OP_TS, FTB_OP_CPU, FTB_OP_BUFFER, FTB_OP_SLOT, FTB_OP_COMM
OP_ORDER = FTB_OP_ORDER
OP_SCALAR, OP_FIXED, OP_STRING, OP_LIST = FTB_OP_SCALAR, FTB_OP_FIXED, FTB_OP_STRING, FTB_OP_LIST

STATUSES = tuple(ftb_status_name(i).decode() for i in range(FTB_N_STATUSES))
MESSAGES = {ftb_status_name(i).decode(): ftb_status_message(i).decode() for i in range(FTB_N_STATUSES)}


cdef ftb_pool POOL  # of all columns of this process


def empty_pool():
    """Give the memory that dropped columns left back to the system; returns how many bytes that were."""
    cdef size_t kept = POOL.kept
    ftb_pool_empty(&POOL)
    return kept


cdef void *allocate(size_t n, size_t size) except NULL:
    cdef void *p = PyMem_Calloc(n if n else 1, size)
    if p is NULL:
        raise MemoryError
    return p


@cython.final
cdef class Pages:
    """The one doorway for input: a contiguous buffer, held until this object dies.

    It has no Python attributes on purpose: a garbage collector that clears one would leak the export.
    """

    cdef Py_buffer view

    def __cinit__(self, source):
        PyObject_GetBuffer(source, &self.view, PyBUF_CONTIG_RO)

    def __dealloc__(self):
        PyBuffer_Release(&self.view)

    def __len__(self):
        return self.view.len


@cython.final
cdef class Column:
    """Memory of one decoded column; never changes once it is handed out. Exports its bytes, read-only."""

    cdef ftb_column memory

    @staticmethod
    cdef Column adopt(ftb_column *memory):
        cdef Column self = Column.__new__(Column)
        self.memory = memory[0]
        memset(memory, 0, sizeof(ftb_column))
        memory.pool = self.memory.pool
        ftb_column_trim(&self.memory)
        return self

    def __dealloc__(self):
        ftb_column_free(&self.memory)

    def __len__(self):
        return self.memory.size

    def __getbuffer__(self, Py_buffer *view, int flags):
        PyBuffer_FillInfo(view, self, self.memory.data, self.memory.size, 1, flags)


@cython.final
cdef class Dictionary:
    """Strings by code, in the order in which decoding met them."""

    cdef ftb_intern intern

    def __cinit__(self):
        if ftb_intern_init(&self.intern) != FTB_OK:
            raise MemoryError

    def __dealloc__(self):
        ftb_intern_free(&self.intern)

    def __len__(self):
        return self.intern.n

    def strings(self):
        """All strings so far, as bytes."""
        cdef const uint64_t *offsets = <const uint64_t *>self.intern.offsets.data
        cdef const char *text = <const char *>self.intern.bytes.data
        return [text[offsets[i]:offsets[i + 1] - 1] for i in range(self.intern.n)]


cdef int set_abi(ftb_abi *abi, spec) except -1:
    abi.subbuf_size, abi.data_offset, abi.commit_size, abi.type_offset, abi.type_size, abi.big_endian, abi.old_header = spec
    if abi.commit_size not in (4, 8) or abi.data_offset < 8 + abi.commit_size or abi.subbuf_size <= abi.data_offset:
        raise ValueError(f"no sub-buffer is laid out as {tuple(spec)}")
    return 0


cdef void set_clock(ftb_clock *clock, spec, list keep):
    """spec: (mult, shift, hz, offset, interpolate, samples) with samples None or an int64 array of 4 rows."""
    cdef Pages samples
    cdef const int64_t *rows
    clock.mult, clock.shift, clock.hz, clock.offset, clock.interpolate = spec[:5]
    if spec[5] is None:
        return
    samples = Pages(spec[5])
    keep.append(samples)
    clock.n_samples = <uint32_t>(samples.view.len // (4 * sizeof(int64_t)))
    rows = <const int64_t *>samples.view.buf
    clock.times = rows
    clock.offsets = rows + clock.n_samples
    clock.scalings = rows + 2 * clock.n_samples
    clock.fractions = rows + 3 * clock.n_samples


cdef const void *borrow(list keep, source) except? NULL:
    """The memory of a buffer, held by `keep`."""
    cdef Pages pages = Pages(source)
    keep.append(pages)
    return pages.view.buf


cdef int set_select(ftb_select *select, slot_of, window, pids, list keep) except -1:
    select.slot_of = <const uint16_t *>borrow(keep, slot_of)
    if len(slot_of) != FTB_N_IDS:
        raise ValueError(f"slot_of has {len(slot_of)} entries, not {FTB_N_IDS}")
    if window is not None:
        select.has_window = 1
        select.start, select.end = window
    else:
        select.start, select.end = INT64_MIN, INT64_MAX
    if pids is not None:
        select.pids = <const int32_t *>borrow(keep, pids[0])
        select.n_pids, select.pid_offset, select.pid_width = len(pids[0]), pids[1], pids[2]
    return 0


cdef int set_filters(ftb_select *select, list programs, uint32_t n_slots, list keep) except -1:
    """The table is the caller's to free."""
    cdef Program program
    cdef const ftb_program **table
    cdef uint32_t i
    if len(programs) != n_slots:
        raise ValueError("filters are one per slot")
    table = <const ftb_program **>allocate(n_slots, sizeof(void *))
    select.filter_of_slot = table
    keep.append(programs)
    for i in range(n_slots):
        program = programs[i]
        if program is not None:
            table[i] = &program.program
    return 0


@cython.final
cdef class Walker:
    """Sub-buffer times of one ABI and clock: what a search by time needs."""

    cdef ftb_abi abi
    cdef ftb_clock clock
    cdef list keep

    def __cinit__(self, abi, clock):
        self.keep = []
        set_abi(&self.abi, abi)
        set_clock(&self.clock, clock, self.keep)

    def correct(self, raw):
        """A raw time stamp after correction."""
        return ftb_clock_apply(&self.clock, raw & 0xffffffffffffffff)

    def page_time(self, Pages pages, size_t index):
        return ftb_page_time(&self.abi, &self.clock, <const uint8_t *>pages.view.buf, pages.view.len, index)

    def find_page(self, Pages pages, int64_t ts):
        """Index of the first sub-buffer that begins after ts."""
        return ftb_find_page(&self.abi, &self.clock, <const uint8_t *>pages.view.buf, pages.view.len, ts)


cdef class Program  # in _text.pxi


@cython.final
cdef class Decoder:
    """Scan, merge and gather over streams whose segments the caller feeds.

    Parameters
    ----------
    abis : list of (subbuf_size, data_offset, commit_size, type_offset, type_size, big_endian, old_header)
    clocks : list of (mult, shift, hz, offset, interpolate, samples)
    streams : list of (cpu, buffer, index into abis, into clocks, into selects)
    selects : list of (slot_of, pids, comms, filters), one per recording: slot_of a uint16 array of N_IDS entries, event id
        -> slot; pids (sorted int32 array, offset, width) or None; comms an int32 array, pid -> code, or None; filters (may
        be left out) a list of Program or None, one per slot, or None
    n_slots : number of slots
    window : (start, end) or None
    total_bytes : of what will be fed, when everything is to be decoded at once: columns are then sized by progress
    """

    cdef ftb_decoder d
    cdef ftb_abi *abis
    cdef ftb_clock *clocks
    cdef ftb_batch *batches
    cdef ftb_select *selects
    cdef ftb_comms *comms   # one per select
    cdef uint32_t n_selects, n_plans, n_slots
    cdef uint32_t room      # plans that there may be
    cdef list keep          # everything that C borrows for the decoder's whole life
    cdef list segments      # the current segment of each stream
    cdef list dictionaries

    def __cinit__(self, abis, clocks, streams, selects, unsigned n_slots, window=None, uint64_t total_bytes=0):
        cdef uint32_t i, n = len(streams)
        cdef ftb_stream *s
        if n > <uint32_t>FTB_MAX_STREAMS:
            raise ValueError(f"{n} streams; at most {FTB_MAX_STREAMS} can be merged")
        self.keep = []
        self.segments = [None] * n
        self.dictionaries = []
        self.abis = <ftb_abi *>allocate(len(abis), sizeof(ftb_abi))
        self.clocks = <ftb_clock *>allocate(len(clocks), sizeof(ftb_clock))
        self.selects = <ftb_select *>allocate(len(selects), sizeof(ftb_select))
        self.comms = <ftb_comms *>allocate(len(selects), sizeof(ftb_comms))
        self.batches = <ftb_batch *>allocate(2 * n + 1, sizeof(ftb_batch))
        self.d.merge.streams = <ftb_stream *>allocate(n, sizeof(ftb_stream))
        self.d.merge.sources = <ftb_source *>allocate(2 * n + 1, sizeof(ftb_source))
        self.d.count_of_slot = <uint64_t *>allocate(n_slots, sizeof(uint64_t))
        self.d.merge.n_streams = n
        self.d.batch = &self.batches[2 * n]
        for i in range(2 * n):
            self.d.merge.sources[i].batch = &self.batches[i]
        ftb_merge_plant(&self.d.merge)
        self.n_slots = n_slots
        for i in range(len(abis)):
            set_abi(&self.abis[i], abis[i])
        for i in range(len(clocks)):
            set_clock(&self.clocks[i], clocks[i], self.keep)
        self.n_selects = len(selects)  # of zeroed ones
        for i in range(len(selects)):
            self.set_select_of(i, window, selects[i])
        for i in range(n):
            s = &self.d.merge.streams[i]
            s.cpu, s.buffer = streams[i][0], streams[i][1]
            s.abi = &self.abis[<size_t>streams[i][2]]
            s.clock = &self.clocks[<size_t>streams[i][3]]
            s.select = &self.selects[self.select_index(streams[i][4])]
            s.index = i
            s.last_ts = INT64_MIN
        self.d.context.streams = self.d.merge.streams
        self.d.context.n_streams = n
        self.d.context.total_bytes = total_bytes

    cdef Py_ssize_t select_index(self, Py_ssize_t i) except -1:
        if not 0 <= i < self.n_selects:
            raise IndexError(i)
        return i

    cdef int set_select_of(self, uint32_t i, window, spec) except -1:
        cdef ftb_select *select = &self.selects[i]
        slot_of, pids, comms = spec[:3]
        set_select(select, slot_of, window, pids, self.keep)
        if comms is not None:
            self.comms[i].code_of_pid = <const int32_t *>borrow(self.keep, comms)
            self.comms[i].n_pids = len(comms)
        if len(spec) > 3 and spec[3] is not None:
            set_filters(select, spec[3], self.n_slots, self.keep)
        return 0

    def __dealloc__(self):
        cdef uint32_t i
        for i in range(self.n_plans):
            ftb_plan_free(&self.d.plans[i])
            PyMem_Free(self.d.plans[i].ops)
            PyMem_Free(self.d.groups[i])
        ftb_column_free(&self.d.report.problems)
        ftb_column_free(&self.d.report.losses)
        PyMem_Free(self.d.plans)
        PyMem_Free(self.d.groups)
        PyMem_Free(self.d.orders)
        PyMem_Free(self.d.count_of_slot)
        PyMem_Free(self.d.merge.sources)
        PyMem_Free(self.d.merge.streams)
        PyMem_Free(self.batches)
        for i in range(self.n_selects):
            PyMem_Free(<void *>self.selects[i].filter_of_slot)
        PyMem_Free(self.selects)
        PyMem_Free(self.comms)
        PyMem_Free(self.clocks)
        PyMem_Free(self.abis)

    def set_plans(self, plan_of_slot, plans, uint32_t room=0):
        """plans: list of (min_len, big_endian, ops, index into selects).

        ops: list of (op, where, width, out_width, signed, offset, size, Dictionary or None).
        room: as many plans may be added, when slots are met whose entry of plan_of_slot is NEW_PLAN.
        """
        if self.d.plans is not NULL or len(plan_of_slot) != self.n_slots:
            raise ValueError("plans are set once, one entry per slot")
        self.room, self.d.meets = len(plans) + room, room > 0
        self.d.plans = <ftb_plan *>allocate(self.room, sizeof(ftb_plan))
        self.d.groups = <ftb_group **>allocate(self.room, sizeof(ftb_group *))
        self.add_plans(plans)
        self.d.plan_of_slot = <const uint16_t *>borrow(self.keep, plan_of_slot)

    def add_plans(self, plans):
        """More of them, when step() came back with NEED_PLAN; plan_of_slot, the caller's own, then tells of which slots they are."""
        if len(plans) > self.room - self.n_plans:
            raise ValueError("more plans than there is room for")
        if self.d.orders is NULL and any(op[0] == FTB_OP_ORDER for plan in plans for op in plan[2]):
            self.d.orders = <int64_t *>allocate(self.room, FTB_GROUP * sizeof(int64_t))
        try:
            for plan in plans:
                self.add_plan(&self.d.plans[self.n_plans], plan)
        except BaseException:
            self.d.plan_of_slot = NULL  # no step with half of them
            raise

    cdef int add_plan(self, ftb_plan *plan, spec) except -1:
        self.d.groups[self.n_plans] = <ftb_group *>allocate(1, sizeof(ftb_group))
        self.n_plans = self.d.n_plans = self.n_plans + 1
        self.set_plan(plan, spec)
        if ftb_plan_check(plan) != FTB_OK:
            raise ValueError(ftb_status_message(FTB_BAD_PLAN).decode())
        return 0

    cdef int set_plan(self, ftb_plan *plan, spec) except -1:
        cdef Dictionary dictionary
        cdef ftb_op *op
        ops = spec[2]
        plan.min_len, plan.big_endian = spec[0], spec[1]
        plan.comms = &self.comms[self.select_index(spec[3])]
        plan.ops = <ftb_op *>allocate(len(ops), sizeof(ftb_op))
        plan.n_ops = len(ops)
        for i in range(len(ops)):
            op = &plan.ops[i]
            set_op(op, ops[i])
            op.column.pool = op.values.pool = &POOL
            dictionary = ops[i][7]
            if dictionary is not None:
                self.dictionaries.append(dictionary)
                op.intern = &dictionary.intern
        return 0

    def feed(self, uint32_t stream, Pages pages, uint64_t file_offset, bint last, size_t start=0, size_t stop=<size_t>-1):
        """Give a stream its next segment: bytes start to stop of pages (None: the stream is at its end)."""
        if stream >= self.d.merge.n_streams:
            raise IndexError(stream)
        if pages is None:
            ftb_stream_feed(&self.d.merge.streams[stream], NULL, 0, file_offset, True)
            return
        stop = min(stop, <size_t>pages.view.len)
        start = min(start, stop)
        ftb_stream_feed(&self.d.merge.streams[stream], <const uint8_t *>pages.view.buf + start, stop - start, file_offset + start, last)
        self.segments[stream] = pages

    def feed_block(self, uint32_t stream, list block):
        """Give a stream its next segments, a list of (pages, file offset, start, stop): it asks for more when all are read."""
        cdef ftb_segment *segment
        cdef Pages pages
        cdef size_t start, stop
        cdef bytes storage = PyBytes_FromStringAndSize(NULL, len(block) * sizeof(ftb_segment))
        if stream >= self.d.merge.n_streams:
            raise IndexError(stream)
        segment = <ftb_segment *><char *>storage
        for pages, file_offset, start, stop in block:
            stop = min(stop, <size_t>pages.view.len)
            start = min(start, stop)
            segment.data = <const uint8_t *>pages.view.buf + start
            segment.size, segment.file_offset = stop - start, file_offset + start
            segment += 1
        ftb_stream_feed_block(&self.d.merge.streams[stream], <const ftb_segment *><char *>storage, len(block))
        self.segments[stream] = storage, block

    def step(self, uint64_t max_records):
        """Decode until max_records were seen (OK), a stream needs a segment (NEED_SEGMENT: see need), a slot a plan (NEED_PLAN:
        see new_slot) or all is read (DONE)."""
        cdef int status
        if self.d.plan_of_slot is NULL:
            raise ValueError("no plans are set")
        with nogil:
            status = ftb_decode(&self.d, max_records)
        if status == FTB_NO_MEMORY:
            raise MemoryError
        return status

    @property
    def need(self):
        """The stream that NEED_SEGMENT is about."""
        return self.d.merge.need

    @property
    def new_slot(self):
        """The slot that NEED_PLAN is about."""
        return self.d.new_slot

    @property
    def problem_count(self):
        return self.d.report.problems.size // 24

    def take(self, uint32_t plan):
        """Rows and columns gathered so far by one plan; it starts afresh. Returns (rows, [(Column, Column or None)])."""
        cdef ftb_plan *p
        cdef uint32_t i
        if plan >= self.n_plans:
            raise IndexError(plan)
        p = &self.d.plans[plan]
        rows, columns = p.rows, []
        for i in range(p.n_ops):
            p.ops[i].usual = p.ops[i].column.size
            values = Column.adopt(&p.ops[i].values) if p.ops[i].op in (FTB_OP_LIST, FTB_OP_COMM) else None
            columns.append((Column.adopt(&p.ops[i].column), values))
        p.rows = 0
        return rows, columns

    def rows(self, uint32_t plan):
        return self.d.plans[plan].rows if plan < self.n_plans else 0

    def outside(self, uint32_t plan):
        """Dynamic fields that lay outside their record so far."""
        return self.d.plans[plan].outside if plan < self.n_plans else 0

    def counts(self):
        return [self.d.count_of_slot[i] for i in range(self.n_slots)]

    def take_problems(self):
        """Rows of (uint64 offset, uint64 bytes, uint32 stream, uint32 status) since the last call."""
        return Column.adopt(&self.d.report.problems)

    def take_losses(self):
        """Rows of (int64 before, int64 after, int64 count, uint32 stream, uint32 unused) since the last call."""
        return Column.adopt(&self.d.report.losses)

    def losses_from(self, size_t offset):
        """A copy of such rows from a byte on: those of gaps that the scan has reached. None of them is taken."""
        cdef size_t size = self.d.report.losses.size
        return (<const char *>self.d.report.losses.data)[offset:size] if offset < size else b""

    def stream_stats(self):
        """Per stream: pages, events, paddings, time_extends, time_stamps, missed_pages, backwards, last_ts."""
        return [(s.pages, s.events, s.paddings, s.time_extends, s.time_stamps, s.missed_pages, bool(s.backwards), s.last_ts)
                for s in self.d.merge.streams[:self.d.merge.n_streams]]

    cdef int fill(self) except -1:
        """Only refs: the next batch, for records()."""
        cdef int status
        ftb_batch_clear(self.d.batch)
        with nogil:
            status = ftb_merge_fill(&self.d.merge, self.d.batch, &self.d.report)
        if status == FTB_NO_MEMORY:
            raise MemoryError
        return status


cdef void set_op(ftb_op *op, spec):
    op.op, op.where, op.width, op.out_width, op.is_signed, op.offset, op.size = spec[:7]


@cython.final
cdef class FieldReader:
    """Reads one field of one record. Built from an op as in Decoder.set_plans."""

    cdef ftb_op op
    cdef uint32_t need      # bytes that the record must have
    cdef bint big_endian, as_bytes
    cdef int bits

    def __cinit__(self, spec, uint32_t need, bint big_endian, bint as_bytes):
        set_op(&self.op, spec)
        self.need, self.big_endian, self.as_bytes = need, big_endian, as_bytes

    cdef object read(self, const uint8_t *data, uint32_t size):
        """int, str, bytes or a list of ints; None when the record is too short to hold the field."""
        if size < self.need:
            return None
        if self.op.op == FTB_OP_SCALAR:
            return read_scalar(&self.op, self.big_endian, data)
        cdef int outside = 0
        cdef ftb_span span = ftb_locate(&self.op, self.big_endian, data, size, &outside)
        if self.op.op == FTB_OP_STRING:
            return read_string(span)
        if self.as_bytes:
            return PyBytes_FromStringAndSize(<const char *>span.data, span.len)
        return self.read_list(span)

    cdef list read_list(self, ftb_span span):
        cdef ftb_op element = self.op
        cdef uint32_t width = self.op.width
        element.offset = 0
        return [read_scalar(&element, self.big_endian, span.data + i * width) for i in range(span.len // width)]


cdef inline object read_scalar(const ftb_op *op, bint big_endian, const uint8_t *data):
    cdef uint64_t value = ftb_read_scalar(op, big_endian, data)
    return <int64_t>value if op.is_signed else value


cdef inline str read_string(ftb_span span):
    cdef const void *nul = memchr(span.data, 0, span.len) if span.len else NULL
    cdef Py_ssize_t n = <const uint8_t *>nul - span.data if nul is not NULL else span.len
    return PyUnicode_DecodeUTF8(<const char *>span.data, n, "surrogateescape")


@cython.final
cdef class EventInfo:
    """What all records of one event share."""

    cdef readonly str name
    cdef readonly object format
    cdef readonly dict readers
    cdef readonly object context      # what the Python layer wants at hand, for comm lookups and text
    cdef FieldReader pid, flags, preempt_count

    def __init__(self, str name, format, dict readers, context):
        self.name, self.format, self.readers, self.context = name, format, readers, context
        self.pid, self.flags = readers.get("common_pid"), readers.get("common_flags")
        self.preempt_count = readers.get("common_preempt_count")


@cython.no_gc
cdef class Record:
    """One event of a trace: a reference into its sub-buffer, decoded when looked at.

    Attributes
    ----------
    ts : int
        Time stamp after correction, in ns on the trace clock (raw units for clocks that do not count ns).
    cpu : int
    buffer : int
        Position of its buffer in ``Trace.buffers``.
    lost : int or None
        Events lost just before this one: a count, -1 when the count is unknown, None when none were.
    """

    cdef readonly int64_t ts
    cdef readonly uint32_t cpu
    cdef readonly uint32_t buffer
    cdef readonly object lost
    cdef readonly EventInfo info
    cdef Pages owner
    cdef const uint8_t *data
    cdef uint32_t size

    @property
    def name(self):
        return self.info.name

    @property
    def format(self):
        return self.info.format

    @property
    def pid(self):
        return self.common(self.info.pid)

    @property
    def flags(self):
        return self.common(self.info.flags)

    @property
    def preempt_count(self):
        return self.common(self.info.preempt_count)

    cdef object common(self, FieldReader reader):
        return reader.read(self.data, self.size) if reader is not None else None

    @property
    def payload(self):
        """The record's bytes, a copy; fields start at offset 0."""
        return PyBytes_FromStringAndSize(<const char *>self.data, self.size)

    def missing(self, name):
        """What ``record[name]`` is where the format has no such field: an error, unless a subclass knows better."""
        raise self.info.context.no_such_field(self.info.format, name)

    def __getitem__(self, name):
        cdef FieldReader reader = self.info.readers.get(name)
        if reader is None:
            return self.missing(name)
        return reader.read(self.data, self.size)


@cython.final
cdef class Records:
    """Iterates over a decoder's refs as objects of `cls`, a subclass of Record.

    `driver` feeds segments and judges problems; `make_info` makes the EventInfo of a slot when a record of it is first met.
    """

    cdef Decoder decoder
    cdef object driver, cls, make_info
    cdef list infos
    cdef uint32_t pos
    cdef int status
    cdef size_t problems
    cdef dict loss_cursor

    def __init__(self, Decoder decoder, driver, make_info, n_slots, cls):
        self.decoder, self.driver, self.make_info, self.cls = decoder, driver, make_info, cls
        self.infos = [None] * n_slots
        self.status = FTB_OK
        self.loss_cursor = {}
        ftb_batch_clear(decoder.d.batch)

    def __iter__(self):
        return self

    cdef int refill(self) except -1:
        """The next batch; 0 when there is none. A segment is replaced only when no ref of a batch points into it any more."""
        self.pos = 0
        ftb_batch_clear(self.decoder.d.batch)
        while self.decoder.d.batch.n == 0:
            if self.status == FTB_DONE:
                return 0
            if self.status == FTB_NEED_SEGMENT:
                self.driver.feed(self.decoder)
            self.status = self.decoder.fill()
            if self.decoder.d.report.problems.size != self.problems:
                self.problems = self.decoder.d.report.problems.size
                self.driver.check(self.decoder)
                self.problems = self.decoder.d.report.problems.size
        return 1

    def __next__(self):
        cdef ftb_batch *b = self.decoder.d.batch
        cdef uint32_t i
        cdef Record record
        if self.pos >= b.n and not self.refill():
            raise StopIteration
        i = self.pos
        self.pos += 1
        record = self.at(b, i)
        if ftb_is_after_loss(b, i):
            record.lost = self.next_loss(ftb_stream_index(b, i), b.ts[i])
        return record

    cdef Record at(self, ftb_batch *b, uint32_t i):
        """A record of the batch, but for what was lost before it."""
        cdef uint32_t stream = ftb_stream_index(b, i)
        cdef Record record = self.cls.__new__(self.cls)
        record.ts = b.ts[i]
        record.cpu = self.decoder.d.merge.streams[stream].cpu
        record.buffer = self.decoder.d.merge.streams[stream].buffer
        record.info = self.info(ftb_slot(b, i))
        record.owner = self.decoder.segments[stream]
        record.data = b.data[i]
        record.size = ftb_len(b, i)
        return record

    cdef EventInfo info(self, uint16_t slot):
        if self.infos[slot] is None:
            self.infos[slot] = self.make_info(slot)
        return self.infos[slot]

    cdef object next_loss(self, uint32_t stream, int64_t ts):
        """Count of the stream's last gap up to ts: marks of earlier gaps may have been filtered out with their records."""
        cdef const int64_t *row
        cdef size_t at = self.loss_cursor.get(stream, 0), n = self.decoder.d.report.losses.size // 32
        count = -1
        while at < n:
            row = <const int64_t *>(self.decoder.d.report.losses.data + 32 * at)
            if (<const uint32_t *>(row + 3))[0] == stream:
                if row[1] > ts:
                    break
                count = row[2]
            at += 1
        self.loss_cursor[stream] = at
        return count


include "_text.pxi"
include "_lines.pxi"
include "_repack.pxi"
include "_analysis.pxi"
include "_wakeups.pxi"
include "_census.pxi"
include "_kallsyms.pxi"
