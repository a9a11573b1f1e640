/* The states of tasks and CPUs. */
#include "ftb_sched.h"

#include "ftb_inline.h"

static ftb_task_times *find_task(ftb_sched *s, int32_t pid)
{
    int is_new;
    uint32_t number = ftb_pairs_number(&s->numbers, (uint32_t)pid, 0, &is_new);
    if (FTB_UNLIKELY(is_new)) {
        ftb_task_times fresh = {.pid = pid, .cpu = -1, .state = FTB_TASK_UNKNOWN};
        if (ftb_column_append(&s->tasks, &fresh, sizeof fresh) != FTB_OK)
            return NULL;
    }
    return number == FTB_NO_NUMBER ? NULL : (ftb_task_times *)(void *)s->tasks.data + number;
}

static ftb_cpu_times *find_cpu(ftb_sched *s, uint16_t cpu)
{
    return ftb_column_at(&s->cpus, cpu, sizeof(ftb_cpu_times));
}

static void add_time(int64_t *sum, int64_t from, int64_t to)
{
    if (to > from)
        *sum = (int64_t)((uint64_t)*sum + (uint64_t)to - (uint64_t)from);
}

/* The state that a task was in ends; `wrong`: the row that ends it contradicts it. */
static void close_state(const ftb_sched *s, ftb_task_times *t, int64_t ts, int wrong)
{
    if (!t->known)
        return;
    int runs = t->state == FTB_TASK_RUN;
    int lost = runs ? ftb_gaps_since(&s->gaps, (uint32_t)t->cpu, t->since) : ftb_gaps_any_since(&s->gaps, t->since);
    add_time(&t->times[wrong || lost ? FTB_TASK_UNKNOWN : t->state], t->since, ts);
}

static void set_state(ftb_task_times *t, uint32_t state, int64_t ts)
{
    t->known = 1;
    t->state = state;
    t->since = ts;
}

static int leave(ftb_sched *s, int32_t pid, uint16_t cpu, uint8_t state, int64_t ts)
{
    if (pid <= 0)
        return FTB_OK;
    ftb_task_times *t = find_task(s, pid);
    if (t == NULL)
        return FTB_NO_MEMORY;
    close_state(s, t, ts, t->state != FTB_TASK_RUN);
    set_state(t, state < FTB_N_TASK_STATES ? state : FTB_TASK_UNKNOWN, ts);
    t->preempted += state == FTB_TASK_RUNNABLE;
    t->cpu = cpu;
    return FTB_OK;
}

static int enter(ftb_sched *s, int32_t pid, uint16_t cpu, int64_t ts)
{
    if (pid <= 0)
        return FTB_OK;
    ftb_task_times *t = find_task(s, pid);
    if (t == NULL)
        return FTB_NO_MEMORY;
    close_state(s, t, ts, t->state == FTB_TASK_RUN);
    set_state(t, FTB_TASK_RUN, ts);
    t->migrations += t->cpu >= 0 && t->cpu != cpu;
    t->runs++;
    t->cpu = cpu;
    return FTB_OK;
}

static int wake(ftb_sched *s, int32_t pid, int64_t ts)
{
    if (pid <= 0)
        return FTB_OK;
    ftb_task_times *t = find_task(s, pid);
    if (t == NULL)
        return FTB_NO_MEMORY;
    if (t->known && (t->state == FTB_TASK_RUN || t->state == FTB_TASK_RUNNABLE))
        return FTB_OK;
    close_state(s, t, ts, 0);
    set_state(t, FTB_TASK_RUNNABLE, ts);
    return FTB_OK;
}

static void add_cpu(const ftb_sched *s, ftb_cpu_times *c, uint32_t cpu, int64_t ts, int wrong)
{
    int is_unknown = wrong || ftb_gaps_since(&s->gaps, cpu, c->since);
    add_time(is_unknown ? &c->unknown : c->pid != 0 ? &c->busy : &c->idle, c->since, ts);
}

static int change(ftb_sched *s, const ftb_sched_rows *rows, size_t i)
{
    int64_t ts = rows->ts[i];
    ftb_cpu_times *c = find_cpu(s, rows->cpu[i]);
    if (c == NULL)
        return FTB_NO_MEMORY;
    if (c->known)
        add_cpu(s, c, rows->cpu[i], ts, c->pid != rows->pid[i]);
    *c = (ftb_cpu_times){c->busy, c->idle, c->unknown, c->switches + 1, ts, rows->next[i], 1};
    if (rows->left == NULL)
        return FTB_OK; /* of tasks nothing is wanted */
    if (leave(s, rows->pid[i], rows->cpu[i], rows->left[i], ts) != FTB_OK)
        return FTB_NO_MEMORY;
    return enter(s, rows->next[i], rows->cpu[i], ts);
}

int ftb_sched_begin(ftb_sched *s, uint16_t cpu, int32_t pid, int64_t since)
{
    ftb_cpu_times *c = find_cpu(s, cpu);
    if (c == NULL)
        return FTB_NO_MEMORY;
    *c = (ftb_cpu_times){.since = since, .pid = pid, .known = 1};
    if (pid <= 0)
        return FTB_OK;
    ftb_task_times *t = find_task(s, pid);
    if (t == NULL)
        return FTB_NO_MEMORY;
    if (!t->known) {
        set_state(t, FTB_TASK_RUN, since);
        t->cpu = cpu;
    }
    return FTB_OK;
}

/* The source of the next row. NULL: there are no more. */
static ftb_sched_rows *next_source(ftb_sched_rows *switches, ftb_sched_rows *wakeups, uint32_t n_wakeups)
{
    ftb_sched_rows *next = switches->at < switches->n ? switches : NULL;
    for (uint32_t k = 0; k < n_wakeups; k++) {
        ftb_sched_rows *w = &wakeups[k];
        if (w->at < w->n && (next == NULL || w->order[w->at] < next->order[next->at]))
            next = w;
    }
    return next;
}

int ftb_sched_step(ftb_sched *s, ftb_sched_rows *switches, ftb_sched_rows *wakeups, uint32_t n_wakeups)
{
    ftb_sched_rows *next;
    while ((next = next_source(switches, wakeups, n_wakeups)) != NULL) {
        size_t i = next->at++;
        if (ftb_gaps_pass(&s->gaps, next->ts[i]) != FTB_OK)
            return FTB_NO_MEMORY;
        if ((next == switches ? change(s, next, i) : wake(s, next->pid[i], next->ts[i])) != FTB_OK)
            return FTB_NO_MEMORY;
    }
    return FTB_OK;
}

int ftb_sched_finish(ftb_sched *s, int64_t end)
{
    if (ftb_gaps_pass(&s->gaps, end) != FTB_OK)
        return FTB_NO_MEMORY;
    ftb_task_times *tasks = (ftb_task_times *)(void *)s->tasks.data;
    for (size_t i = 0; i < s->tasks.size / sizeof *tasks; i++)
        close_state(s, &tasks[i], end, 0);
    ftb_cpu_times *cpus = (ftb_cpu_times *)(void *)s->cpus.data;
    for (size_t i = 0; i < s->cpus.size / sizeof *cpus; i++)
        if (cpus[i].known)
            add_cpu(s, &cpus[i], (uint32_t)i, end, 0);
    return FTB_OK;
}

void ftb_sched_free(ftb_sched *s)
{
    ftb_gaps_free(&s->gaps);
    ftb_pairs_free(&s->numbers);
    ftb_column_free(&s->tasks);
    ftb_column_free(&s->cpus);
}
