# The C contract of analyses as Cython sees it: declarations of csrc/ftb_gaps.h, ftb_graph.h, ftb_sched.h, ftb_intervals.h,
# ftb_sections.h, ftb_residency.h, ftb_samples.h and ftb_keys.h.
from libc.stdint cimport int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t

from ftbuf._csrc cimport ftb_column


cdef extern from "ftb_gaps.h" nogil:
    ctypedef struct ftb_gaps:
        size_t at

    int ftb_gaps_add(ftb_gaps *gaps, const int64_t *before, const int64_t *after, const uint16_t *cpu, size_t n)


cdef extern from "ftb_graph.h" nogil:
    ctypedef struct ftb_call_rows:
        const int64_t *order
        const int64_t *ts
        const int64_t *duration
        const uint64_t *func
        const int32_t *pid
        const uint32_t *depth
        const uint16_t *cpu
        size_t n

    ctypedef struct ftb_switch_rows:
        const int64_t *order
        const int64_t *ts
        const int32_t *prev
        const int32_t *next
        size_t n

    ctypedef struct ftb_graph:
        uint8_t by_path
        uint8_t own_time
        ftb_gaps gaps
        ftb_column sums

    int ftb_graph_step(ftb_graph *calls, ftb_call_rows *entries, ftb_call_rows *returns, ftb_switch_rows *switches)
    int ftb_graph_count(ftb_graph *calls, const uint64_t *func, const uint16_t *cpu, const uint64_t *times, size_t n)
    void ftb_graph_finish(ftb_graph *calls)
    void ftb_graph_free(ftb_graph *calls)


cdef extern from "ftb_sched.h" nogil:
    ctypedef struct ftb_sched_rows:
        const int64_t *order
        const int64_t *ts
        const int32_t *pid
        const int32_t *next
        const uint16_t *cpu
        const uint8_t *left
        size_t n

    ctypedef struct ftb_sched:
        ftb_gaps gaps
        ftb_column tasks
        ftb_column cpus

    int ftb_sched_begin(ftb_sched *s, uint16_t cpu, int32_t pid, int64_t since)
    int ftb_sched_step(ftb_sched *s, ftb_sched_rows *switches, ftb_sched_rows *wakeups, uint32_t n_wakeups)
    int ftb_sched_finish(ftb_sched *s, int64_t end)
    void ftb_sched_free(ftb_sched *s)


cdef extern from "ftb_intervals.h" nogil:
    ctypedef struct ftb_edge_rows:
        const int64_t *order
        const int64_t *ts
        const int32_t *key
        const int64_t *kind
        const uint8_t *flag
        size_t n

    ctypedef struct ftb_lane:
        ftb_edge_rows begins
        ftb_edge_rows ends
        ftb_column whole
        ftb_column lost

    ctypedef struct ftb_intervals:
        ftb_gaps gaps
        uint8_t of_cpus
        ftb_column under_way

    int ftb_intervals_step(ftb_intervals *v, ftb_lane *lanes, uint16_t n_lanes)
    void ftb_intervals_free(ftb_intervals *v)


cdef extern from "ftb_keys.h" nogil:
    ctypedef struct ftb_keys:
        ftb_column values

    int ftb_keys_groups(ftb_keys *k, const int64_t *keys, size_t n, int32_t *groups)
    void ftb_keys_free(ftb_keys *k)


cdef extern from "ftb_samples.h" nogil:
    ctypedef struct ftb_samples:
        ftb_column sums
        ftb_column cells

    int ftb_samples_add(ftb_samples *s, const int32_t *groups, const int64_t *values, size_t n)
    void ftb_samples_free(ftb_samples *s)


cdef extern from "ftb_sections.h" nogil:
    ctypedef struct ftb_switch_edges:
        const int64_t *order
        const int64_t *ts
        const int64_t *caller
        const int32_t *pid
        const uint16_t *cpu
        size_t n

    ctypedef struct ftb_sections:
        ftb_column off
        ftb_column found
        uint64_t repeated
        uint64_t unbegun

    int ftb_sections_step(ftb_sections *s, ftb_switch_edges *off, ftb_switch_edges *on)
    void ftb_sections_free(ftb_sections *s)


cdef extern from "ftb_residency.h" nogil:
    ctypedef struct ftb_state_rows:
        const int64_t *ts
        const int64_t *key
        const int64_t *state
        size_t n

    ctypedef struct ftb_residency:
        ftb_gaps gaps
        int64_t first
        int64_t unknown
        ftb_column sums

    int ftb_residency_begin(ftb_residency *r, int64_t key, int64_t since)
    int ftb_residency_step(ftb_residency *r, const ftb_state_rows *rows)
    int ftb_residency_finish(ftb_residency *r, int64_t end)
    void ftb_residency_free(ftb_residency *r)
