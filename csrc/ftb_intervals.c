/* Beginnings and ends. */
#include "ftb_intervals.h"

#include "ftb_inline.h"

static ftb_under_way *place(ftb_intervals *v, uint32_t number)
{
    return (ftb_under_way *)(void *)v->under_way.data + number;
}

static ftb_under_way *add(ftb_intervals *v, int32_t key, uint16_t lane)
{
    ftb_under_way fresh = {.key = key, .lane = lane};
    if (ftb_column_append(&v->under_way, &fresh, sizeof fresh) != FTB_OK)
        return NULL;
    return place(v, (uint32_t)(v->under_way.size / sizeof fresh) - 1);
}

static uint32_t *cell(ftb_column *numbers, size_t at)
{
    return ftb_column_at(numbers, at, sizeof(uint32_t));
}

#define MOST_PLACES (1u << 20) /* of CPUs that few machines have, and files may pretend to have */

/* Where the place + 1 of a key's lane stands; 0: it has none yet. NULL: no memory. */
static uint32_t *known(ftb_intervals *v, int32_t key, uint16_t lane)
{
    if (v->of_cpus && (size_t)(uint16_t)key * v->n_lanes < MOST_PLACES)
        return cell(&v->places, (size_t)(uint16_t)key * v->n_lanes + lane);
    int is_new;
    uint32_t number = ftb_pairs_number(&v->numbers, (uint32_t)key, lane, &is_new);
    return number == FTB_NO_NUMBER ? NULL : cell(&v->others, number);
}

static ftb_under_way *find(ftb_intervals *v, int32_t key, uint16_t lane)
{
    uint32_t *at = known(v, key, lane);
    if (at == NULL)
        return NULL;
    if (FTB_LIKELY(*at != 0))
        return place(v, *at - 1);
    ftb_under_way *fresh = add(v, key, lane);
    *at = (uint32_t)(v->under_way.size / sizeof *fresh);
    return fresh;
}

/* ---- what lies in what, on each CPU ---- */

static uint32_t *top_of(ftb_intervals *v, int32_t cpu)
{
    return cell(&v->tops, (uint16_t)cpu);
}

static int push(ftb_intervals *v, ftb_under_way *u)
{
    uint32_t *top = top_of(v, u->key);
    if (top == NULL)
        return FTB_NO_MEMORY;
    uint32_t own = (uint32_t)(u - place(v, 0)) + 1;
    u->below = *top;
    if (*top != 0)
        place(v, *top - 1)->above = own;
    *top = own;
    return FTB_OK;
}

/* Take it off the stack, wherever it is: records may end what others began later. */
static void drop(ftb_intervals *v, const ftb_under_way *u)
{
    if (u->above != 0) {
        ftb_under_way *above = place(v, u->above - 1);
        above->below = u->below;
        above->is_moved = 1;
    } else {
        *top_of(v, u->key) = u->below;
    }
    if (u->below != 0)
        place(v, u->below - 1)->above = u->above;
}

static void count_inside(ftb_intervals *v, const ftb_under_way *u, int64_t duration)
{
    if (u->below == 0 || u->is_moved)
        return;
    ftb_under_way *around = place(v, u->below - 1);
    around->inside = (int64_t)((uint64_t)around->inside + (uint64_t)duration);
}

/* ---- rows ---- */

/* What is under way ends, as an interval that is whole or not. */
static int settle(ftb_intervals *v, ftb_under_way *u, int64_t ts, uint32_t flag, ftb_column *to, int is_lost)
{
    int64_t duration = ts > u->since ? (int64_t)((uint64_t)ts - (uint64_t)u->since) : 0;
    ftb_interval found = {duration, u->inside, u->kind, u->key, flag};
    if (v->of_cpus) {
        if (!is_lost)
            count_inside(v, u, duration);
        drop(v, u);
    }
    u->is_open = 0;
    return ftb_column_append(to, &found, sizeof found);
}

static int begin(ftb_intervals *v, ftb_lane *of, size_t i, uint16_t lane)
{
    const ftb_edge_rows *rows = &of->begins;
    ftb_under_way *u = find(v, rows->key[i], lane);
    if (u == NULL || (u->is_open && settle(v, u, rows->ts[i], 0, &of->lost, 1) != FTB_OK))
        return FTB_NO_MEMORY;
    *u = (ftb_under_way){.since = rows->ts[i], .kind = rows->kind[i], .key = rows->key[i], .is_open = 1, .lane = lane};
    return v->of_cpus ? push(v, u) : FTB_OK;
}

static int end(ftb_intervals *v, ftb_lane *of, size_t i, uint16_t lane)
{
    const ftb_edge_rows *rows = &of->ends;
    ftb_under_way *u = find(v, rows->key[i], lane);
    if (u == NULL)
        return FTB_NO_MEMORY;
    if (!u->is_open)
        return FTB_OK; /* it began before the recording */
    int lost = v->of_cpus ? ftb_gaps_since(&v->gaps, (uint32_t)u->key, u->since) : ftb_gaps_any_since(&v->gaps, u->since);
    lost = lost || u->kind != rows->kind[i];
    return settle(v, u, rows->ts[i], rows->flag != NULL && rows->flag[i], lost ? &of->lost : &of->whole, lost);
}

/* Where the next row of one of a step's sources stands. */
typedef struct {
    int64_t order;
    uint16_t lane;
    uint8_t is_end;
} source;

static ftb_edge_rows *rows_of(ftb_lane *lanes, const source *from)
{
    return from->is_end ? &lanes[from->lane].ends : &lanes[from->lane].begins;
}

static uint32_t find_sources(ftb_lane *lanes, uint16_t n_lanes, source *sources)
{
    uint32_t n = 0;
    for (uint16_t i = 0; i < n_lanes; i++)
        for (uint8_t is_end = 0; is_end < 2; is_end++) {
            source from = {0, i, is_end};
            const ftb_edge_rows *rows = rows_of(lanes, &from);
            if (rows->at < rows->n) {
                from.order = rows->order[rows->at];
                sources[n++] = from;
            }
        }
    return n;
}

static uint32_t next_source(const source *sources, uint32_t n)
{
    uint32_t next = 0;
    for (uint32_t i = 1; i < n; i++)
        next = sources[i].order < sources[next].order ? i : next;
    return next;
}

int ftb_intervals_step(ftb_intervals *v, ftb_lane *lanes, uint16_t n_lanes)
{
    if (ftb_column_reserve(&v->sources, 2 * (size_t)n_lanes * sizeof(source)) != FTB_OK)
        return FTB_NO_MEMORY;
    source *sources = (source *)(void *)v->sources.data;
    v->n_lanes = n_lanes;
    uint32_t n = find_sources(lanes, n_lanes, sources);
    while (n > 0) {
        source *from = &sources[next_source(sources, n)];
        ftb_edge_rows *rows = rows_of(lanes, from);
        size_t i = rows->at++;
        if (ftb_gaps_pass(&v->gaps, rows->ts[i]) != FTB_OK)
            return FTB_NO_MEMORY;
        ftb_lane *lane = &lanes[from->lane];
        if ((from->is_end ? end(v, lane, i, from->lane) : begin(v, lane, i, from->lane)) != FTB_OK)
            return FTB_NO_MEMORY;
        if (rows->at < rows->n)
            from->order = rows->order[rows->at];
        else
            *from = sources[--n];
    }
    return FTB_OK;
}

void ftb_intervals_free(ftb_intervals *v)
{
    ftb_gaps_free(&v->gaps);
    ftb_pairs_free(&v->numbers);
    ftb_column_free(&v->under_way);
    ftb_column_free(&v->places);
    ftb_column_free(&v->others);
    ftb_column_free(&v->tops);
    ftb_column_free(&v->sources);
}
