/* Wakeups of tasks, matched with the switches that run them.
 *
 * Columns of wakeups and switches go in step by step, each in time order; waits come out. What is kept in between grows with the
 * number of tasks alone. All numbers are untrusted. The rules stand in ftbuf/analysis/wakeup.py.
 */
#ifndef FTB_WAKEUPS_H
#define FTB_WAKEUPS_H

#include "ftbuf.h"

/* From a wakeup to the switch that runs the task. Tasks are numbered 0, 1, 2, ... by the caller. */
typedef struct {
    int64_t woken, ran;
    int32_t task, name, prio; /* name and priority as the switch tells them */
    int32_t waker, from_cpu;  /* from_cpu: as the wakeup tells it */
    uint32_t repeated;        /* further wakeups before the switch */
    uint16_t cpu, waker_cpu;
    uint32_t broken; /* a switch is missing in between */
} ftb_wait;

/* Rows of one step. A task that is no task (the idle one) has a number that none has, such as -1. */
typedef struct {
    const int64_t *order, *ts; /* order: places among the records of all events */
    const int32_t *task, *from_cpu, *waker;
    const uint16_t *cpu;
    size_t n;
} ftb_wakeup_rows;

typedef struct {
    const int64_t *order, *ts;
    const int32_t *prev, *next, *prio, *name; /* prev, next: tasks; prio, name: of the next */
    const uint8_t *asleep;                    /* whether the task before went to sleep */
    const uint16_t *cpu;
    size_t n;
} ftb_run_rows;

typedef struct {
    ftb_column tasks; /* of struct ftb_sleeper */
    ftb_column waits; /* of ftb_wait: those that ended */
    uint64_t running; /* wakeups of tasks that were running, but for those that raced with going to sleep */
} ftb_wakeups;

/* All rows of a step, in their order. n_tasks: how many tasks have numbers by now. */
int ftb_wakeups_step(ftb_wakeups *w, size_t n_tasks, const ftb_wakeup_rows *woken, const ftb_run_rows *runs);
/* Waits of the tasks that still do, appended to `out` with ran = 0. */
int ftb_wakeups_open(const ftb_wakeups *w, ftb_column *out);
void ftb_wakeups_free(ftb_wakeups *w);

#endif
