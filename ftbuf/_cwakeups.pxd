# The C contract of wakeups as Cython sees it: declarations of csrc/ftb_wakeups.h and nothing else.
from libc.stdint cimport int32_t, int64_t, uint8_t, uint16_t, uint64_t

from ftbuf._csrc cimport ftb_column


cdef extern from "ftb_wakeups.h" nogil:
    ctypedef struct ftb_wakeup_rows:
        const int64_t *order
        const int64_t *ts
        const int32_t *task
        const int32_t *from_cpu
        const int32_t *waker
        const uint16_t *cpu
        size_t n

    ctypedef struct ftb_run_rows:
        const int64_t *order
        const int64_t *ts
        const int32_t *prev
        const int32_t *next
        const int32_t *prio
        const int32_t *name
        const uint8_t *asleep
        const uint16_t *cpu
        size_t n

    ctypedef struct ftb_wakeups:
        ftb_column waits
        uint64_t running

    int ftb_wakeups_step(ftb_wakeups *w, size_t n_tasks, const ftb_wakeup_rows *woken, const ftb_run_rows *runs)
    int ftb_wakeups_open(const ftb_wakeups *w, ftb_column *out)
    void ftb_wakeups_free(ftb_wakeups *w)
