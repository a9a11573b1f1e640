/* Which wakeup a switch ends: a few words are kept of each task. */
#include "ftb_wakeups.h"

#include "ftb_inline.h"

enum { UNSEEN, LEFT, SLEEPS, RUNS }; /* what the last switch of a task says */

typedef struct {
    int64_t ts;
    int32_t waker, from_cpu;
    uint16_t cpu;
} wakeup;

typedef struct ftb_sleeper {
    wakeup first, last; /* since the last switch */
    wakeup race;        /* the last one before it went to sleep: it may have been woken on its way */
    uint32_t n;         /* wakeups since the last switch */
    uint8_t state, has_race, was_running;
} sleeper;

static int make_room(ftb_wakeups *w, size_t n_tasks)
{
    size_t known = w->tasks.size / sizeof(sleeper);
    if (n_tasks <= known)
        return FTB_OK;
    if (n_tasks > SIZE_MAX / sizeof(sleeper) || ftb_column_reserve(&w->tasks, (n_tasks - known) * sizeof(sleeper)) != FTB_OK)
        return FTB_NO_MEMORY;
    sleeper *all = (sleeper *)(void *)w->tasks.data;
    for (size_t i = known; i < n_tasks; i++)
        all[i] = (sleeper){.state = UNSEEN};
    w->tasks.size = n_tasks * sizeof(sleeper);
    return FTB_OK;
}

/* NULL: it is no task. */
static sleeper *task_at(ftb_wakeups *w, int32_t task)
{
    return (uint32_t)task < w->tasks.size / sizeof(sleeper) ? (sleeper *)(void *)w->tasks.data + task : NULL;
}

static void wake(ftb_wakeups *w, const ftb_wakeup_rows *rows, size_t i)
{
    sleeper *t = task_at(w, rows->task[i]);
    if (t == NULL)
        return;
    t->last = (wakeup){rows->ts[i], rows->waker[i], rows->from_cpu[i], rows->cpu[i]};
    if (t->n == 0)
        t->first = t->last;
    t->n += t->n < UINT32_MAX;
    w->running += t->state == RUNS;
}

static void leave(sleeper *t, int sleeps)
{
    t->has_race = sleeps && t->n > 0 && (t->state == RUNS || t->state == UNSEEN);
    if (t->has_race) {
        t->race = t->last;
        t->was_running = t->state == RUNS;
    }
    t->n = 0;
    t->state = sleeps ? SLEEPS : LEFT;
}

static ftb_wait wait_of(const wakeup *woken, int32_t task)
{
    return (ftb_wait){.woken = woken->ts, .task = task, .waker = woken->waker, .from_cpu = woken->from_cpu,
                      .waker_cpu = woken->cpu};
}

static int run(ftb_wakeups *w, const ftb_run_rows *rows, size_t i)
{
    int32_t task = rows->next[i];
    sleeper *t = task_at(w, task);
    if (t == NULL)
        return FTB_OK;
    int status = FTB_OK, is_race = t->n == 0 && t->state == SLEEPS && t->has_race;
    if (t->n > 0 || is_race) {
        ftb_wait wait = wait_of(is_race ? &t->race : &t->first, task);
        wait.ran = rows->ts[i];
        wait.cpu = rows->cpu[i];
        wait.prio = rows->prio[i];
        wait.name = rows->name[i];
        wait.repeated = is_race ? 0 : t->n - 1;
        wait.broken = t->state == RUNS;
        w->running -= is_race && t->was_running;
        status = ftb_column_append(&w->waits, &wait, sizeof wait);
    }
    t->n = 0;
    t->has_race = 0;
    t->state = RUNS;
    return status;
}

int ftb_wakeups_step(ftb_wakeups *w, size_t n_tasks, const ftb_wakeup_rows *woken, const ftb_run_rows *runs)
{
    if (make_room(w, n_tasks) != FTB_OK)
        return FTB_NO_MEMORY;
    size_t next = 0;
    for (size_t i = 0; i < runs->n; i++) {
        for (; next < woken->n && woken->order[next] < runs->order[i]; next++)
            wake(w, woken, next);
        sleeper *before = task_at(w, runs->prev[i]);
        if (before != NULL)
            leave(before, runs->asleep[i] != 0);
        if (run(w, runs, i) != FTB_OK)
            return FTB_NO_MEMORY;
    }
    for (; next < woken->n; next++)
        wake(w, woken, next);
    return FTB_OK;
}

int ftb_wakeups_open(const ftb_wakeups *w, ftb_column *out)
{
    const sleeper *all = (const sleeper *)(const void *)w->tasks.data;
    for (size_t i = 0; i < w->tasks.size / sizeof(sleeper); i++) {
        if (all[i].n == 0 || all[i].state == RUNS)
            continue;
        ftb_wait wait = wait_of(&all[i].first, (int32_t)i);
        wait.repeated = all[i].n - 1;
        if (ftb_column_append(out, &wait, sizeof wait) != FTB_OK)
            return FTB_NO_MEMORY;
    }
    return FTB_OK;
}

void ftb_wakeups_free(ftb_wakeups *w)
{
    ftb_column_free(&w->tasks);
    ftb_column_free(&w->waits);
}
