# Part of _core.pyx: calls of the function graph.
from ftbuf._cgraph cimport *


cdef const void *numbers(list keep, source, size_t n, size_t width) except? NULL:
    """The memory of n numbers of so many bytes each, held by `keep`."""
    cdef Pages pages = Pages(source)
    if <size_t>pages.view.len != n * width or <size_t>pages.view.itemsize != width:
        raise ValueError(f"not {n} numbers of {width} bytes")
    keep.append(pages)
    return pages.view.buf


@cython.final
cdef class Calls:
    """Sums of calls, by function and CPU or by path of callers.

    Parameters
    ----------
    by_path, own_time : as in csrc/ftb_graph.h
    gaps : (int64 array of the times behind them, ascending; uint16 array of CPUs)
    """

    cdef ftb_graph calls
    cdef list keep
    cdef bint is_finished

    def __cinit__(self, bint by_path, bint own_time, gaps):
        self.keep = []
        self.calls.by_path, self.calls.own_time = by_path, own_time
        self.calls.gaps.n = len(gaps[0])
        self.calls.gaps.after = <const int64_t *>numbers(self.keep, gaps[0], self.calls.gaps.n, 8)
        self.calls.gaps.cpu = <const uint16_t *>numbers(self.keep, gaps[1], self.calls.gaps.n, 2)

    def __dealloc__(self):
        ftb_graph_free(&self.calls)

    def step(self, entries, returns, switches):
        """Arrays of one step, each kind of rows in time order: int64 ts, uint16 cpu, int32 pid, uint64 func, uint32 depth (and
        int64 duration) of entries and returns; int64 ts, int32 pids before and after of switches. None: there are none.
        """
        cdef ftb_call_rows calls[2]
        cdef ftb_switch_rows changes
        cdef int status
        keep = []
        self.check_open()
        memset(calls, 0, sizeof(calls))
        memset(&changes, 0, sizeof(changes))
        if entries is not None:
            set_call_rows(&calls[0], entries, keep)
        if returns is not None:
            set_call_rows(&calls[1], returns, keep)
            calls[1].duration = <const int64_t *>numbers(keep, returns[5], calls[1].n, 8)
        if switches is not None:
            changes.n = len(switches[0])
            changes.ts = <const int64_t *>numbers(keep, switches[0], changes.n, 8)
            changes.prev = <const int32_t *>numbers(keep, switches[1], changes.n, 4)
            changes.next = <const int32_t *>numbers(keep, switches[2], changes.n, 4)
        with nogil:
            status = ftb_graph_step(&self.calls, &calls[0], &calls[1], &changes)
        if status != FTB_OK:
            raise MemoryError

    def count(self, func, cpu):
        """Calls of which nothing is known but that they were: uint64 func, uint16 cpu."""
        cdef size_t n = len(func)
        cdef int status
        keep = []
        self.check_open()
        cdef const uint64_t *functions = <const uint64_t *>numbers(keep, func, n, 8)
        cdef const uint16_t *cpus = <const uint16_t *>numbers(keep, cpu, n, 2)
        with nogil:
            status = ftb_graph_count(&self.calls, functions, cpus, n)
        if status != FTB_OK:
            raise MemoryError

    def finish(self):
        """Rows of ftb_call_sums: nothing may follow."""
        self.check_open()
        self.is_finished = True
        ftb_graph_finish(&self.calls)
        return Column.adopt(&self.calls.sums)

    cdef int check_open(self) except -1:
        if self.is_finished:
            raise ValueError("these calls are finished")
        return 0


cdef int set_call_rows(ftb_call_rows *rows, arrays, list keep) except -1:
    rows.n = len(arrays[0])
    rows.ts = <const int64_t *>numbers(keep, arrays[0], rows.n, 8)
    rows.cpu = <const uint16_t *>numbers(keep, arrays[1], rows.n, 2)
    rows.pid = <const int32_t *>numbers(keep, arrays[2], rows.n, 4)
    rows.func = <const uint64_t *>numbers(keep, arrays[3], rows.n, 8)
    rows.depth = <const uint32_t *>numbers(keep, arrays[4], rows.n, 4)
    return 0
