/* The stacks of tasks, and sums of the calls on them. */
#include "ftb_graph.h"

#include "ftb_inline.h"

#include <stdlib.h>

#define FIRST_FRAMES 16u

typedef struct {
    uint64_t func;
    int64_t ts;
    int64_t slept; /* of the task, when the call began */
    uint32_t depth;
    uint32_t sums; /* index of those that count the call */
    uint16_t cpu;
} frame;

/* `done[d]` is the time of calls of depth d that returned and whose caller has not yet: a caller takes all that is deeper than
 * itself. Lost entries and returns do no harm to it. */
typedef struct ftb_task {
    frame *frames;
    int64_t *done;
    uint32_t n_frames, room; /* room: frames, and entries of done */
    uint32_t deepest;        /* done[] is 0 from here on */
    uint8_t is_out;
    int64_t out, slept; /* since when it is switched out; how long it was before that */
} task;

/* ---- tables ---- */

static ftb_call_sums *sums_at(ftb_graph *calls, uint32_t index)
{
    return (ftb_call_sums *)(void *)calls->sums.data + index;
}

static uint32_t find_sums(ftb_graph *calls, uint64_t func, uint32_t key)
{
    int is_new;
    uint32_t index = ftb_pairs_number(&calls->places, func, key, &is_new);
    if (FTB_UNLIKELY(is_new)) {
        ftb_call_sums fresh = {.func = func, .key = key};
        if (ftb_column_append(&calls->sums, &fresh, sizeof fresh) != FTB_OK)
            return FTB_NO_NODE;
    }
    return index;
}

/* Every CPU has an idle task of its own, and all are pid 0. */
static task *find_task(ftb_graph *calls, int32_t pid, uint16_t cpu)
{
    int is_new;
    uint32_t index = ftb_pairs_number(&calls->tasks, (uint32_t)pid, pid != 0 ? 0 : cpu, &is_new);
    if (FTB_UNLIKELY(is_new)) {
        task fresh = {0};
        if (ftb_column_append(&calls->task_rows, &fresh, sizeof fresh) != FTB_OK)
            return NULL;
    }
    return index == FTB_NO_NODE ? NULL : (task *)(void *)calls->task_rows.data + index;
}

/* ---- stacks ---- */

static int make_room(task *t, uint32_t depth)
{
    uint32_t need = (depth > t->n_frames ? depth : t->n_frames) + 2;
    if (FTB_LIKELY(need <= t->room))
        return FTB_OK;
    uint32_t room = t->room == 0 ? FIRST_FRAMES : t->room;
    while (room < need)
        room *= 2; /* depths are below FTB_MAX_DEPTH, and frames on a stack have different ones */
    frame *frames = realloc(t->frames, room * sizeof *frames);
    if (frames == NULL)
        return FTB_NO_MEMORY;
    t->frames = frames;
    int64_t *done = realloc(t->done, room * sizeof *done);
    if (done == NULL)
        return FTB_NO_MEMORY;
    memset(done + t->room, 0, (room - t->room) * sizeof *done);
    t->done = done;
    t->room = room;
    return FTB_OK;
}

/* Take the frames from `depth` on off the stack: their returns are not in the recording. */
static void abandon(ftb_graph *calls, task *t, uint32_t depth)
{
    while (t->n_frames > 0 && t->frames[t->n_frames - 1].depth >= depth)
        sums_at(calls, t->frames[--t->n_frames].sums)->open++;
}

/* Time of the calls deeper than `depth`, which their caller takes. */
static int64_t take_deeper(task *t, uint32_t depth)
{
    uint64_t sum = 0;
    for (; t->deepest > depth + 1; t->deepest--) {
        sum += (uint64_t)t->done[t->deepest - 1];
        t->done[t->deepest - 1] = 0;
    }
    return (int64_t)sum;
}

static void add_done(task *t, uint32_t depth, int64_t time)
{
    t->done[depth] = (int64_t)((uint64_t)t->done[depth] + (uint64_t)time);
    if (t->deepest <= depth)
        t->deepest = depth + 1;
}

static uint32_t key_of(const ftb_graph *calls, const task *t, uint16_t cpu)
{
    if (!calls->by_path)
        return cpu;
    return t->n_frames > 0 ? t->frames[t->n_frames - 1].sums : FTB_NO_NODE;
}

static uint32_t depth_of(const ftb_call_rows *rows, size_t i)
{
    return rows->depth[i] < FTB_MAX_DEPTH ? rows->depth[i] : FTB_MAX_DEPTH - 1;
}

static int enter(ftb_graph *calls, const ftb_call_rows *rows, size_t i)
{
    uint32_t depth = depth_of(rows, i);
    task *t = find_task(calls, rows->pid[i], rows->cpu[i]);
    if (t == NULL || make_room(t, depth) != FTB_OK)
        return FTB_NO_MEMORY;
    abandon(calls, t, depth);
    int64_t orphans = take_deeper(t, depth); /* of a caller that ended unseen: they are inside of whoever called that one */
    if (orphans != 0)
        add_done(t, depth, orphans);
    uint32_t sums = find_sums(calls, rows->func[i], key_of(calls, t, rows->cpu[i]));
    if (sums == FTB_NO_NODE)
        return FTB_NO_MEMORY;
    sums_at(calls, sums)->hit++;
    t->frames[t->n_frames++] = (frame){rows->func[i], rows->ts[i], t->slept, depth, sums, rows->cpu[i]};
    return FTB_OK;
}

static void add_square(uint64_t square[2], int64_t time)
{
    uint64_t x = (uint64_t)time, low = x & UINT32_MAX, high = x >> 32;
    uint64_t middle = low * high, parts[2] = {low * low, high * high + (middle >> 31)};
    uint64_t shifted = middle << 33;
    parts[0] += shifted;
    parts[1] += parts[0] < shifted;
    square[0] += parts[0];
    square[1] += parts[1] + (square[0] < parts[0]);
}

static void add_return(const ftb_graph *calls, ftb_call_sums *s, int64_t time, int64_t inner, int is_lossy)
{
    int64_t own = time > inner ? time - inner : 0;
    int64_t counted = calls->own_time ? own : time;
    s->returned++;
    s->lossy += (uint64_t)is_lossy;
    s->time = (int64_t)((uint64_t)s->time + (uint64_t)counted);
    s->inner = (int64_t)((uint64_t)s->inner + (uint64_t)(time - own));
    add_square(s->square, counted);
}

/* The frame that a return takes off the stack; NULL: its entry is not in the recording. */
static const frame *matching(ftb_graph *calls, task *t, uint32_t depth, uint64_t func)
{
    abandon(calls, t, depth + 1);
    const frame *top = t->n_frames > 0 ? &t->frames[t->n_frames - 1] : NULL;
    if (top != NULL && top->depth == depth && top->func == func) {
        t->n_frames--;
        return top;
    }
    abandon(calls, t, depth);
    return NULL;
}

/* How long a task had slept when a call of it began: one whose entry is lost began after its caller. */
static int64_t slept_before(const task *t, const frame *f)
{
    if (f != NULL)
        return f->slept;
    return t->n_frames > 0 ? t->frames[t->n_frames - 1].slept : 0;
}

static int leave(ftb_graph *calls, const ftb_call_rows *rows, size_t i)
{
    uint32_t depth = depth_of(rows, i);
    task *t = find_task(calls, rows->pid[i], rows->cpu[i]);
    if (t == NULL || make_room(t, depth) != FTB_OK)
        return FTB_NO_MEMORY;
    const frame *f = matching(calls, t, depth, rows->func[i]);
    uint32_t sums = f != NULL && calls->by_path ? f->sums : find_sums(calls, rows->func[i], key_of(calls, t, rows->cpu[i]));
    if (sums == FTB_NO_NODE)
        return FTB_NO_MEMORY;
    ftb_call_sums *s = sums_at(calls, sums);
    s->hit += f == NULL;
    int64_t duration = rows->duration[i] > 0 ? rows->duration[i] : 0;
    int64_t slept = (int64_t)((uint64_t)t->slept - (uint64_t)slept_before(t, f));
    int64_t time = slept <= 0 ? duration : duration > slept ? duration - slept : 0;
    int is_lossy = f != NULL && (ftb_gaps_since(&calls->gaps, f->cpu, f->ts) || ftb_gaps_since(&calls->gaps, rows->cpu[i], f->ts));
    add_return(calls, s, time, take_deeper(t, depth), is_lossy);
    add_done(t, depth, time);
    return FTB_OK;
}

/* Idle tasks do not sleep. */
static int change_task(ftb_graph *calls, const ftb_switch_rows *rows, size_t i)
{
    task *t = rows->prev[i] != 0 ? find_task(calls, rows->prev[i], 0) : NULL;
    if (t == NULL && rows->prev[i] != 0)
        return FTB_NO_MEMORY;
    if (t != NULL) {
        t->out = rows->ts[i];
        t->is_out = 1;
    }
    t = rows->next[i] != 0 ? find_task(calls, rows->next[i], 0) : NULL;
    if (t == NULL && rows->next[i] != 0)
        return FTB_NO_MEMORY;
    if (t != NULL && t->is_out && rows->ts[i] > t->out)
        t->slept = (int64_t)((uint64_t)t->slept + (uint64_t)rows->ts[i] - (uint64_t)t->out);
    if (t != NULL)
        t->is_out = 0;
    return FTB_OK;
}

/* ---- the order of rows ---- */

static int has_more(const ftb_call_rows *rows)
{
    return rows->at < rows->n;
}

static int next_row(ftb_graph *calls, ftb_call_rows *entries, ftb_call_rows *returns, ftb_switch_rows *switches)
{
    ftb_call_rows *rows = !has_more(returns) ? entries : !has_more(entries) ? returns
                          : returns->order[returns->at] < entries->order[entries->at] ? returns : entries;
    if (switches->at < switches->n && (!has_more(rows) || switches->order[switches->at] < rows->order[rows->at]))
        return change_task(calls, switches, switches->at++);
    size_t i = rows->at++;
    if (ftb_gaps_pass(&calls->gaps, rows->ts[i]) != FTB_OK)
        return FTB_NO_MEMORY;
    return rows == entries ? enter(calls, rows, i) : leave(calls, rows, i);
}

int ftb_graph_step(ftb_graph *calls, ftb_call_rows *entries, ftb_call_rows *returns, ftb_switch_rows *switches)
{
    while (has_more(entries) || has_more(returns) || switches->at < switches->n)
        if (next_row(calls, entries, returns, switches) != FTB_OK)
            return FTB_NO_MEMORY;
    return FTB_OK;
}

int ftb_graph_count(ftb_graph *calls, const uint64_t *func, const uint16_t *cpu, const uint64_t *times, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        uint32_t sums = find_sums(calls, func[i], calls->by_path ? FTB_NO_NODE : cpu[i]);
        if (sums == FTB_NO_NODE)
            return FTB_NO_MEMORY;
        sums_at(calls, sums)->hit += times != NULL ? times[i] : 1;
    }
    return FTB_OK;
}

void ftb_graph_finish(ftb_graph *calls)
{
    task *all = (task *)(void *)calls->task_rows.data;
    for (size_t i = 0; i < calls->task_rows.size / sizeof *all; i++)
        abandon(calls, &all[i], 0);
}

void ftb_graph_free(ftb_graph *calls)
{
    task *all = (task *)(void *)calls->task_rows.data;
    for (size_t i = 0; i < calls->task_rows.size / sizeof *all; i++) {
        free(all[i].frames);
        free(all[i].done);
    }
    ftb_pairs_free(&calls->tasks);
    ftb_pairs_free(&calls->places);
    ftb_gaps_free(&calls->gaps);
    ftb_column_free(&calls->task_rows);
    ftb_column_free(&calls->sums);
}
