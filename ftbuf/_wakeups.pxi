# Part of _core.pyx: wakeups matched with the switches that run tasks.
from ftbuf._cwakeups cimport *


@cython.final
cdef class Wakeups:
    """Waits from a wakeup to the switch that runs the task; tasks are numbered by the caller."""

    cdef ftb_wakeups found

    def __dealloc__(self):
        ftb_wakeups_free(&self.found)

    @property
    def running(self):
        """Wakeups of tasks that were running, but for those that raced with going to sleep."""
        return self.found.running

    def step(self, size_t n_tasks, woken, runs):
        """Rows of ftb_wait that end in a step; its arrays, each kind of rows in order: int64 order, int64 ts, uint16 cpu,
        int32 task, int32 from_cpu, int32 waker of wakeups; int64 order, int64 ts, uint16 cpu, int32 prev, uint8 asleep, int32 next,
        int32 prio, int32 name of switches.
        """
        cdef ftb_wakeup_rows a
        cdef ftb_run_rows b
        cdef int status
        keep = []
        a.n, b.n = len(woken[0]), len(runs[0])
        a.order = <const int64_t *>numbers(keep, woken[0], a.n, 8)
        a.ts = <const int64_t *>numbers(keep, woken[1], a.n, 8)
        a.cpu = <const uint16_t *>numbers(keep, woken[2], a.n, 2)
        a.task = <const int32_t *>numbers(keep, woken[3], a.n, 4)
        a.from_cpu = <const int32_t *>numbers(keep, woken[4], a.n, 4)
        a.waker = <const int32_t *>numbers(keep, woken[5], a.n, 4)
        b.order = <const int64_t *>numbers(keep, runs[0], b.n, 8)
        b.ts = <const int64_t *>numbers(keep, runs[1], b.n, 8)
        b.cpu = <const uint16_t *>numbers(keep, runs[2], b.n, 2)
        b.prev = <const int32_t *>numbers(keep, runs[3], b.n, 4)
        b.asleep = <const uint8_t *>numbers(keep, runs[4], b.n, 1)
        b.next = <const int32_t *>numbers(keep, runs[5], b.n, 4)
        b.prio = <const int32_t *>numbers(keep, runs[6], b.n, 4)
        b.name = <const int32_t *>numbers(keep, runs[7], b.n, 4)
        with nogil:
            status = ftb_wakeups_step(&self.found, n_tasks, &a, &b)
        if status != FTB_OK:
            raise MemoryError
        return Column.adopt(&self.found.waits)

    def open(self):
        """Rows of ftb_wait, without an end, of the tasks that still wait."""
        cdef ftb_column out
        memset(&out, 0, sizeof(out))
        status = ftb_wakeups_open(&self.found, &out)
        column = Column.adopt(&out)
        if status != FTB_OK:
            raise MemoryError
        return column
