# Part of _core.pyx: what analyses add up of decoded columns, step by step.
from ftbuf._canalysis cimport *


cdef const void *numbers(list keep, source, size_t n, size_t width) except? NULL:
    """The memory of n numbers of so many bytes each, held by `keep`."""
    cdef Pages pages = Pages(source)
    if <size_t>pages.view.len != n * width or <size_t>pages.view.itemsize != width:
        raise ValueError(f"not {n} numbers of {width} bytes")
    keep.append(pages)
    return pages.view.buf


cdef int add_gaps(ftb_gaps *gaps, spec) except -1:
    """spec: of the gaps that have become known int64 times before and after, and uint16 CPUs."""
    cdef size_t n = len(spec[0])
    keep = []
    if n == 0:
        return 0
    cdef const int64_t *before = <const int64_t *>numbers(keep, spec[0], n, 8)
    cdef const int64_t *after = <const int64_t *>numbers(keep, spec[1], n, 8)
    cdef const uint16_t *cpu = <const uint16_t *>numbers(keep, spec[2], n, 2)
    return check_memory(ftb_gaps_add(gaps, before, after, cpu, n))


@cython.final
cdef class Calls:
    """Sums of calls, by function and CPU or by path of callers.

    Parameters
    ----------
    by_path, own_time : as in csrc/ftb_graph.h
    """

    cdef ftb_graph calls
    cdef bint is_finished

    def __cinit__(self, bint by_path, bint own_time):
        self.calls.by_path, self.calls.own_time = by_path, own_time

    def __dealloc__(self):
        ftb_graph_free(&self.calls)

    def step(self, entries, returns, switches, gaps):
        """Arrays of one step, each kind of rows in order: int64 order, int64 ts, uint16 cpu, int32 pid, uint64 func, uint32 depth
        (and int64 duration) of entries and returns; int64 order, int64 ts, int32 pids before and after of switches. None: there
        are none.
        ``gaps``: see add_gaps.
        """
        cdef ftb_call_rows calls[2]
        cdef ftb_switch_rows changes
        cdef int status
        keep = []
        check_unfinished(self.is_finished)
        add_gaps(&self.calls.gaps, gaps)
        memset(calls, 0, sizeof(calls))
        memset(&changes, 0, sizeof(changes))
        if entries is not None:
            set_call_rows(&calls[0], entries, keep)
        if returns is not None:
            set_call_rows(&calls[1], returns, keep)
            calls[1].duration = <const int64_t *>numbers(keep, returns[6], calls[1].n, 8)
        if switches is not None:
            changes.n = len(switches[0])
            changes.order = <const int64_t *>numbers(keep, switches[0], changes.n, 8)
            changes.ts = <const int64_t *>numbers(keep, switches[1], changes.n, 8)
            changes.prev = <const int32_t *>numbers(keep, switches[2], changes.n, 4)
            changes.next = <const int32_t *>numbers(keep, switches[3], changes.n, 4)
        with nogil:
            status = ftb_graph_step(&self.calls, &calls[0], &calls[1], &changes)
        check_memory(status)

    def count(self, func, cpu, times):
        """Calls of which nothing is known but that they were: uint64 func, uint16 cpu, uint64 how often (None: once)."""
        cdef size_t n = len(func)
        cdef int status
        keep = []
        check_unfinished(self.is_finished)
        cdef const uint64_t *functions = <const uint64_t *>numbers(keep, func, n, 8)
        cdef const uint16_t *cpus = <const uint16_t *>numbers(keep, cpu, n, 2)
        cdef const uint64_t *often = NULL
        if times is not None:
            often = <const uint64_t *>numbers(keep, times, n, 8)
        with nogil:
            status = ftb_graph_count(&self.calls, functions, cpus, often, n)
        check_memory(status)

    def finish(self):
        """Rows of ftb_call_sums: nothing may follow."""
        check_unfinished(self.is_finished)
        self.is_finished = True
        ftb_graph_finish(&self.calls)
        return Column.adopt(&self.calls.sums)


cdef int check_unfinished(bint is_finished) except -1:
    if is_finished:
        raise ValueError("nothing can be added to what is finished")
    return 0


cdef int check_memory(int status) except -1:
    if status != FTB_OK:
        raise MemoryError
    return 0


cdef int set_call_rows(ftb_call_rows *rows, arrays, list keep) except -1:
    rows.n = len(arrays[0])
    rows.order = <const int64_t *>numbers(keep, arrays[0], rows.n, 8)
    rows.ts = <const int64_t *>numbers(keep, arrays[1], rows.n, 8)
    rows.cpu = <const uint16_t *>numbers(keep, arrays[2], rows.n, 2)
    rows.pid = <const int32_t *>numbers(keep, arrays[3], rows.n, 4)
    rows.func = <const uint64_t *>numbers(keep, arrays[4], rows.n, 8)
    rows.depth = <const uint32_t *>numbers(keep, arrays[5], rows.n, 4)
    return 0


@cython.final
cdef class Sched:
    """Times of tasks and CPUs."""

    cdef ftb_sched sched
    cdef bint is_finished

    def __dealloc__(self):
        ftb_sched_free(&self.sched)

    def begin(self, uint16_t cpu, int32_t pid, int64_t since):
        """Before the first step: what a CPU runs since its first record."""
        check_unfinished(self.is_finished)
        check_memory(ftb_sched_begin(&self.sched, cpu, pid, since))

    def step(self, switches, wakeups, gaps):
        """Arrays of one step, each in order: int64 order, int64 ts, uint16 cpu, int32 pids before and after, uint8 states of
        those that left (None: only CPUs are wanted); of up to two kinds of wakeups int64 order, int64 ts, int32 pid.
        ``gaps``: see add_gaps.
        """
        cdef ftb_sched_rows changes
        cdef ftb_sched_rows woken[2]
        cdef uint32_t k, n = len(wakeups)
        cdef int status
        keep = []
        check_unfinished(self.is_finished)
        if n > 2:
            raise ValueError("more than two kinds of wakeups")
        add_gaps(&self.sched.gaps, gaps)
        memset(&changes, 0, sizeof(changes))
        memset(woken, 0, sizeof(woken))
        changes.n = len(switches[0])
        changes.order = <const int64_t *>numbers(keep, switches[0], changes.n, 8)
        changes.ts = <const int64_t *>numbers(keep, switches[1], changes.n, 8)
        changes.cpu = <const uint16_t *>numbers(keep, switches[2], changes.n, 2)
        changes.pid = <const int32_t *>numbers(keep, switches[3], changes.n, 4)
        changes.next = <const int32_t *>numbers(keep, switches[4], changes.n, 4)
        if switches[5] is not None:
            changes.left = <const uint8_t *>numbers(keep, switches[5], changes.n, 1)
        for k in range(n):
            woken[k].n = len(wakeups[k][0])
            woken[k].order = <const int64_t *>numbers(keep, wakeups[k][0], woken[k].n, 8)
            woken[k].ts = <const int64_t *>numbers(keep, wakeups[k][1], woken[k].n, 8)
            woken[k].pid = <const int32_t *>numbers(keep, wakeups[k][2], woken[k].n, 4)
        with nogil:
            status = ftb_sched_step(&self.sched, &changes, woken, n)
        check_memory(status)

    def finish(self, int64_t end):
        """Rows of ftb_task_times, and of ftb_cpu_times by CPU: nothing may follow."""
        check_unfinished(self.is_finished)
        self.is_finished = True
        check_memory(ftb_sched_finish(&self.sched, end))
        return Column.adopt(&self.sched.tasks), Column.adopt(&self.sched.cpus)


@cython.final
cdef class Intervals:
    """Intervals by key; ``of_cpus`` as in csrc/ftb_intervals.h."""

    cdef ftb_intervals intervals
    cdef bint is_finished

    def __cinit__(self, bint of_cpus):
        self.intervals.of_cpus = of_cpus

    def __dealloc__(self):
        ftb_intervals_free(&self.intervals)

    def step(self, lanes, gaps):
        """Of each lane beginnings and ends: arrays of one step, in order: int64 order, int64 ts, int32 key, int64 kind, and uint8
        flag or None. ``gaps``: see add_gaps.

        Returns of each lane rows of ftb_interval: those that are whole, and those that are not.
        """
        cdef uint16_t i, n = len(lanes)
        cdef int status
        keep = []
        check_unfinished(self.is_finished)
        add_gaps(&self.intervals.gaps, gaps)
        cdef ftb_lane *rows = <ftb_lane *>allocate(n, sizeof(ftb_lane))
        try:
            for i in range(n):
                begins, ends = lanes[i]
                set_edges(&rows[i].begins, begins, keep)
                set_edges(&rows[i].ends, ends, keep)
            with nogil:
                status = ftb_intervals_step(&self.intervals, rows, n)
            check_memory(status)
            return [(Column.adopt(&rows[i].whole), Column.adopt(&rows[i].lost)) for i in range(n)]
        finally:
            for i in range(n):
                ftb_column_free(&rows[i].whole)
                ftb_column_free(&rows[i].lost)
            PyMem_Free(rows)

    def finish(self):
        """Rows of ftb_under_way: the last beginning of each lane and key, and whether no end followed. Nothing may follow."""
        check_unfinished(self.is_finished)
        self.is_finished = True
        return Column.adopt(&self.intervals.under_way)


cdef int set_edges(ftb_edge_rows *rows, arrays, list keep) except -1:
    rows.n = len(arrays[0])
    rows.order = <const int64_t *>numbers(keep, arrays[0], rows.n, 8)
    rows.ts = <const int64_t *>numbers(keep, arrays[1], rows.n, 8)
    rows.key = <const int32_t *>numbers(keep, arrays[2], rows.n, 4)
    rows.kind = <const int64_t *>numbers(keep, arrays[3], rows.n, 8)
    if arrays[4] is not None:
        rows.flag = <const uint8_t *>numbers(keep, arrays[4], rows.n, 1)
    return 0


@cython.final
cdef class Keys:
    """Numbers to groups: see csrc/ftb_keys.h."""

    cdef ftb_keys keys

    def __dealloc__(self):
        ftb_keys_free(&self.keys)

    def __len__(self):
        return self.keys.values.size // sizeof(int64_t)

    def groups(self, keys):
        """The groups of int64 keys, as the memory of int32."""
        cdef size_t n = len(keys)
        cdef int status
        cdef bytearray groups = bytearray(n * sizeof(int32_t))
        cdef int32_t *to = <int32_t *><char *>groups
        keep = []
        cdef const int64_t *wanted = <const int64_t *>numbers(keep, keys, n, 8)
        with nogil:
            status = ftb_keys_groups(&self.keys, wanted, n, to)
        check_memory(status)
        return groups

    def values(self):
        """A copy of the int64 keys, by group."""
        return (<const char *>self.keys.values.data)[:self.keys.values.size] if self.keys.values.size else b""


@cython.final
cdef class Samples:
    """Sums and histograms of samples: see csrc/ftb_samples.h."""

    cdef ftb_samples samples

    def __dealloc__(self):
        ftb_samples_free(&self.samples)

    def add(self, groups, values):
        """int32 groups, of those that count from 0 on, and int64 values."""
        cdef size_t n = len(groups)
        cdef int status
        keep = []
        cdef const int32_t *of = <const int32_t *>numbers(keep, groups, n, 4)
        cdef const int64_t *found = <const int64_t *>numbers(keep, values, n, 8)
        with nogil:
            status = ftb_samples_add(&self.samples, of, found, n)
        check_memory(status)

    def sums(self):
        """A copy of the rows of ftb_sample_sums, by group."""
        return (<const char *>self.samples.sums.data)[:self.samples.sums.size] if self.samples.sums.size else b""

    def cells(self):
        """A copy of the rows of ftb_sample_cell, in no order."""
        return (<const char *>self.samples.cells.data)[:self.samples.cells.size] if self.samples.cells.size else b""


@cython.final
cdef class Sections:
    """Sections of CPUs from "off" to "on": see csrc/ftb_sections.h."""

    cdef ftb_sections sections

    def __dealloc__(self):
        ftb_sections_free(&self.sections)

    def step(self, off, on):
        """Arrays of one step, each in order: int64 order, int64 ts, uint16 cpu, int32 pid, int64 caller. Rows of ftb_section."""
        cdef ftb_switch_edges rows[2]
        cdef int status
        keep = []
        memset(rows, 0, sizeof(rows))
        set_switch_edges(&rows[0], off, keep)
        set_switch_edges(&rows[1], on, keep)
        with nogil:
            status = ftb_sections_step(&self.sections, &rows[0], &rows[1])
        check_memory(status)
        return Column.adopt(&self.sections.found)

    def open(self):
        """A copy of the rows of ftb_off, by CPU."""
        return (<const char *>self.sections.off.data)[:self.sections.off.size] if self.sections.off.size else b""

    @property
    def repeated(self):
        return self.sections.repeated

    @property
    def unbegun(self):
        return self.sections.unbegun


cdef int set_switch_edges(ftb_switch_edges *rows, arrays, list keep) except -1:
    rows.n = len(arrays[0])
    rows.order = <const int64_t *>numbers(keep, arrays[0], rows.n, 8)
    rows.ts = <const int64_t *>numbers(keep, arrays[1], rows.n, 8)
    rows.cpu = <const uint16_t *>numbers(keep, arrays[2], rows.n, 2)
    rows.pid = <const int32_t *>numbers(keep, arrays[3], rows.n, 4)
    rows.caller = <const int64_t *>numbers(keep, arrays[4], rows.n, 8)


@cython.final
cdef class Residency:
    """Times in states: see csrc/ftb_residency.h."""

    cdef ftb_residency residency
    cdef bint is_finished

    def __cinit__(self, int64_t first, int64_t unknown):
        self.residency.first, self.residency.unknown = first, unknown

    def __dealloc__(self):
        ftb_residency_free(&self.residency)

    def begin(self, int64_t key, int64_t since):
        """Before the first step: since when a key is in the unknown state."""
        check_unfinished(self.is_finished)
        check_memory(ftb_residency_begin(&self.residency, key, since))

    def step(self, ts, keys, states, gaps):
        """int64 arrays of one step, in order. ``gaps``: see add_gaps."""
        cdef ftb_state_rows rows
        cdef int status
        keep = []
        check_unfinished(self.is_finished)
        add_gaps(&self.residency.gaps, gaps)
        rows.n = len(ts)
        rows.ts = <const int64_t *>numbers(keep, ts, rows.n, 8)
        rows.key = <const int64_t *>numbers(keep, keys, rows.n, 8)
        rows.state = <const int64_t *>numbers(keep, states, rows.n, 8)
        with nogil:
            status = ftb_residency_step(&self.residency, &rows)
        check_memory(status)

    def finish(self, int64_t end):
        """Rows of ftb_state_sums; states last up to `end`. Nothing may follow."""
        check_unfinished(self.is_finished)
        self.is_finished = True
        check_memory(ftb_residency_finish(&self.residency, end))
        return Column.adopt(&self.residency.sums)
