/* Calls of the function graph: which return belongs to which call, and what each function, or path of callers, cost.
 *
 * Columns of entries, returns and task switches go in step by step, each in time order; sums come out at the end. What is kept
 * in between grows with tasks, functions and paths, not with the trace. All numbers are untrusted; sums wrap.
 */
#ifndef FTB_GRAPH_H
#define FTB_GRAPH_H

#include "ftb_gaps.h"
#include "ftb_pairs.h"

#define FTB_NO_NODE FTB_NO_NUMBER
#define FTB_MAX_DEPTH 1024u /* deeper calls count as calls of this depth: kernels nest some fifty (K:ftrace.h), damage more */

/* What is known of one function on one CPU, or of one path. */
typedef struct {
    uint64_t func;
    uint32_t key; /* the CPU; by path: the index of the caller's sums, or FTB_NO_NODE */
    uint32_t reserved;
    uint64_t hit;      /* calls, counted where they began (where they returned, if the recording lacks their entry) */
    uint64_t returned; /* calls whose return was seen, counted where they returned */
    uint64_t open;     /* calls without a return */
    uint64_t lossy;    /* returned calls with a loss of records on their CPU inside */
    int64_t time;      /* of those that returned */
    int64_t inner;     /* of it, in calls inside */
    uint64_t square[2]; /* low and high word of the sum of the squares of what `time` sums */
} ftb_call_sums;

/* Rows of one step. Entries have no duration. */
typedef struct {
    const int64_t *order, *ts, *duration; /* order: places among the records of all events */
    const uint64_t *func;
    const int32_t *pid;
    const uint32_t *depth;
    const uint16_t *cpu;
    size_t n, at; /* at: the next row */
} ftb_call_rows;

typedef struct {
    const int64_t *order, *ts;
    const int32_t *prev, *next; /* pids */
    size_t n, at;
} ftb_switch_rows;

struct ftb_task;
typedef struct {
    /* set by the caller */
    uint8_t by_path;
    uint8_t own_time; /* the time of a call is without that of the calls inside */
    ftb_gaps gaps; /* what becomes known is added before a step */
    /* state */
    ftb_pairs tasks, places;
    ftb_column task_rows; /* of struct ftb_task */
    ftb_column sums;      /* of ftb_call_sums */
} ftb_graph;

/* All rows of a step, in their order. */
int ftb_graph_step(ftb_graph *calls, ftb_call_rows *entries, ftb_call_rows *returns, ftb_switch_rows *switches);
/* Calls that are nothing but counted: records of the function tracer, each for so many calls (NULL: one). */
int ftb_graph_count(ftb_graph *calls, const uint64_t *func, const uint16_t *cpu, const uint64_t *times, size_t n);
/* Calls that are still open are counted as such: nothing may follow. */
void ftb_graph_finish(ftb_graph *calls);
void ftb_graph_free(ftb_graph *calls);

#endif
