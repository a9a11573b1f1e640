# The C contract of calls as Cython sees it: declarations of csrc/ftb_graph.h and nothing else.
from libc.stdint cimport int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t

from ftbuf._csrc cimport ftb_column


cdef extern from "ftb_graph.h" nogil:
    ctypedef struct ftb_call_rows:
        const int64_t *ts
        const int64_t *duration
        const uint64_t *func
        const int32_t *pid
        const uint32_t *depth
        const uint16_t *cpu
        size_t n

    ctypedef struct ftb_switch_rows:
        const int64_t *ts
        const int32_t *prev
        const int32_t *next
        size_t n

    ctypedef struct ftb_gap_rows:
        const int64_t *after
        const uint16_t *cpu
        size_t n

    ctypedef struct ftb_graph:
        uint8_t by_path
        uint8_t own_time
        ftb_gap_rows gaps
        ftb_column sums

    int ftb_graph_step(ftb_graph *calls, ftb_call_rows *entries, ftb_call_rows *returns, ftb_switch_rows *switches)
    int ftb_graph_count(ftb_graph *calls, const uint64_t *func, const uint16_t *cpu, size_t n)
    void ftb_graph_finish(ftb_graph *calls)
    void ftb_graph_free(ftb_graph *calls)
