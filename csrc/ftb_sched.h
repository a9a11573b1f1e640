/* What tasks and CPUs did with their time: sums over task switches and wakeups that go in step by step, in order of time.
 *
 * What is kept grows with tasks and CPUs, not with the trace. All numbers are untrusted; sums wrap.
 */
#ifndef FTB_SCHED_H
#define FTB_SCHED_H

#include "ftb_gaps.h"
#include "ftb_pairs.h"

/* The order of ftbuf/analysis/tasks.py STATES. */
enum ftb_task_state {
    FTB_TASK_RUN,
    FTB_TASK_RUNNABLE,
    FTB_TASK_SLEEP,
    FTB_TASK_DISK,
    FTB_TASK_STOPPED,
    FTB_TASK_ENDED,
    FTB_TASK_UNKNOWN,
    FTB_N_TASK_STATES
};

typedef struct {
    int64_t times[FTB_N_TASK_STATES];
    uint64_t runs, preempted, migrations;
    int64_t since; /* in its state */
    int32_t pid;
    int32_t cpu; /* that it was on last; -1: not known */
    uint32_t state;
    uint32_t known;
} ftb_task_times;

typedef struct {
    int64_t busy, idle, unknown;
    uint64_t switches;
    int64_t since; /* it runs `pid` */
    int32_t pid;
    uint32_t known;
} ftb_cpu_times;

/* Rows of one step: task switches (with `left`: the state of the task that left), or wakeups (`cpu`, `next`, `left` NULL). */
typedef struct {
    const int64_t *order, *ts; /* order: places among the records of all events */
    const int32_t *pid, *next;
    const uint16_t *cpu;
    const uint8_t *left;
    size_t n, at;
} ftb_sched_rows;

typedef struct {
    ftb_gaps gaps; /* what becomes known is added before a step */
    ftb_pairs numbers;
    ftb_column tasks; /* of ftb_task_times */
    ftb_column cpus;  /* of ftb_cpu_times, by CPU */
} ftb_sched;

/* A CPU has been running a task since its first record; its first switch says which. */
int ftb_sched_begin(ftb_sched *s, uint16_t cpu, int32_t pid, int64_t since);
/* All rows of a step, in their order. */
int ftb_sched_step(ftb_sched *s, ftb_sched_rows *switches, ftb_sched_rows *wakeups, uint32_t n_wakeups);
/* What is under way lasts until `end`; nothing may follow. */
int ftb_sched_finish(ftb_sched *s, int64_t end);
void ftb_sched_free(ftb_sched *s);

#endif
