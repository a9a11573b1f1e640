/* The driver: merge a batch of refs, group it by plan, gather, until a stream needs its next segment. */
#include "ftb_inline.h"
#include "ftb_straight.h"
#include "ftb_walk.h"

/* A record that its plan cannot read: reported and left out. */
static int note_short(ftb_decoder *d, const uint8_t *payload, uint64_t meta)
{
    const ftb_stream *s = &d->merge.streams[ftb_meta_stream(meta)];
    const ftb_problem row = {.offset = ftb_stream_file_offset(s, payload), .bytes = ftb_meta_len(meta), .stream = s->index,
                             .status = FTB_RECORD_SHORT};
    return ftb_column_append(&d->report.problems, &row, sizeof row);
}

/* Leave out records shorter than the fixed part. */
static int drop_short(ftb_decoder *d, ftb_group *g, int64_t *order, uint32_t min_len)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < g->n; i++) {
        if (ftb_meta_len(g->meta[i]) < min_len) {
            if (note_short(d, g->data[i], g->meta[i]) != FTB_OK)
                return FTB_NO_MEMORY;
            continue;
        }
        if (order != NULL)
            order[n] = order[i];
        g->ts[n] = g->ts[i];
        g->data[n] = g->data[i];
        g->meta[n++] = g->meta[i];
    }
    g->n = n;
    return FTB_OK;
}

/* How the refs of a group differ, and whether one is too short: once a group, not once a record. */
static uint64_t look_over(const ftb_group *g, uint32_t min_len, int *any_short)
{
    uint64_t differ = 0, missing = (g->meta[0] >> 32) - min_len; /* the highest bit */
    for (uint32_t i = 0; i < g->n; i++)
        differ |= g->meta[i] ^ g->meta[0];
    for (uint32_t i = 0; differ >> 32 != 0 && i < g->n; i++)
        missing |= (g->meta[i] >> 32) - min_len;
    *any_short = g->n > 0 && missing >> 63 != 0;
    return differ;
}

/* Count the refs of a group, also those that are too short: at once, where they are of one event. */
static void count_slots(ftb_decoder *d, const ftb_group *g, uint64_t differ)
{
    if (FTB_LIKELY((uint16_t)(differ >> 16) == 0))
        d->count_of_slot[(uint16_t)(g->meta[0] >> 16)] += g->n;
    else
        for (uint32_t i = 0; i < g->n; i++)
            d->count_of_slot[(uint16_t)(g->meta[i] >> 16)]++;
}

/* Whether all records of the batch have one slot and one length. */
static int is_uniform(const ftb_batch *b)
{
    return b->differ >> 16 == 0; /* the low 16 bits are the stream */
}

/* Where the refs of a plan's group stand among all records. */
static int64_t *orders_of(const ftb_decoder *d, uint16_t plan)
{
    return d->orders != NULL ? d->orders + (size_t)plan * FTB_GROUP : NULL;
}

/* An empty group, that takes as many as bring its plan's rows to a multiple of FTB_EVEN. */
static void make_room(ftb_decoder *d, uint16_t plan)
{
    d->groups[plan]->n = 0;
    d->groups[plan]->most = FTB_GROUP - d->plans[plan].rows % FTB_EVEN;
}

static int gather_group(ftb_decoder *d, uint16_t plan)
{
    ftb_group *g = d->groups[plan];
    int64_t *order = orders_of(d, plan);
    int any_short, status = FTB_OK;
    const uint64_t differ = look_over(g, d->plans[plan].min_len, &any_short);
    if (g->n > 0)
        count_slots(d, g, differ);
    if (FTB_UNLIKELY(any_short))
        status = drop_short(d, g, order, d->plans[plan].min_len);
    const ftb_refs refs = {g->ts, g->data, g->meta, order, differ, g->n};
    if (refs.n > 0 && status == FTB_OK)
        status = ftb_gather(&d->plans[plan], &d->context, &refs);
    make_room(d, plan);
    return status;
}

static int gather_groups(ftb_decoder *d)
{
    int status = FTB_OK;
    for (uint32_t i = 0; i < d->n_plans; i++) {
        int gathered = gather_group(d, (uint16_t)i); /* also after a failure: groups are empty between calls */
        status = status == FTB_OK ? gathered : status;
    }
    return status;
}

/* The batch waits from its record `at` on. */
static int need_plan(ftb_decoder *d, uint32_t at, uint16_t slot)
{
    d->at = at;
    d->new_slot = slot;
    return FTB_NEED_PLAN;
}

/* Every record to the group of its plan; full groups are gathered. (Copies: the compiler must take the decoder's own members for
 * changed by every store.) */
FTB_ALWAYS_INLINE int distribute_to(ftb_decoder *d, int64_t *orders)
{
    const ftb_batch *b = d->batch;
    const uint16_t *plan_of_slot = d->plan_of_slot;
    ftb_group *const *groups = d->groups;
    for (uint32_t i = d->at, end = b->n; i < end; i++) {
        const uint64_t meta = b->meta[i];
        const uint16_t slot = (uint16_t)(meta >> 16), plan = plan_of_slot[slot];
        if (FTB_UNLIKELY(plan >= FTB_NEW_PLAN)) {
            if (plan == FTB_NEW_PLAN)
                return need_plan(d, i, slot);
            d->count_of_slot[slot]++;
            continue;
        }
        const uint8_t *data = b->data[i];
        __builtin_prefetch(data + FTB_AHEAD, 0, 1); /* spreads what the next walk will want of memory */
        ftb_group *g = groups[plan];
        const uint32_t n = ftb_group_add(g, b->ts[i], data, meta);
        if (orders != NULL)
            orders[(size_t)plan * FTB_GROUP + n - 1] = d->met + i;
        if (FTB_UNLIKELY(n == g->most)) {
            int status = gather_group(d, plan);
            if (status != FTB_OK)
                return status;
        }
    }
    return FTB_OK;
}

static int distribute(ftb_decoder *d)
{
    return d->orders != NULL ? distribute_to(d, d->orders) : distribute_to(d, NULL);
}

/* As many of the batch's refs from `at` on as the group still takes. */
static uint32_t add_to_group(ftb_group *g, const ftb_batch *b, uint32_t at)
{
    uint32_t room = g->most - g->n, n = b->n - at < room ? b->n - at : room;
    memcpy(g->ts + g->n, b->ts + at, n * sizeof *g->ts);
    memcpy(g->data + g->n, b->data + at, n * sizeof *g->data);
    memcpy(g->meta + g->n, b->meta + at, n * sizeof *g->meta);
    g->n += n;
    return n;
}

/* Records of one event and one length: where no others wait, straight from the batch. */
static int gather_uniform(ftb_decoder *d, uint16_t plan)
{
    const ftb_batch *b = d->batch;
    ftb_group *g = d->groups[plan];
    int status = FTB_OK;
    for (uint32_t at = 0; at < b->n && status == FTB_OK;) {
        if (g->n == 0 && g->most == FTB_GROUP && b->n - at >= FTB_GROUP) {
            const ftb_refs refs = {b->ts + at, b->data + at, b->meta + at, NULL, b->differ, FTB_GROUP};
            d->count_of_slot[ftb_slot(b, 0)] += FTB_GROUP;
            status = ftb_gather(&d->plans[plan], &d->context, &refs);
            at += FTB_GROUP;
            continue;
        }
        at += add_to_group(g, b, at);
        if (g->n == g->most)
            status = gather_group(d, plan);
    }
    return status;
}

static int gather_batch(ftb_decoder *d)
{
    const ftb_batch *b = d->batch;
    if (b->n == 0)
        return FTB_OK;
    if (!is_uniform(b) || d->orders != NULL)
        return distribute(d);
    const uint16_t slot = ftb_slot(b, 0), plan = d->plan_of_slot[slot];
    if (plan == FTB_NEW_PLAN)
        return need_plan(d, 0, slot);
    if (plan != FTB_NO_PLAN && ftb_len(b, 0) < d->plans[plan].min_len)
        return distribute(d);
    if (plan != FTB_NO_PLAN)
        return gather_uniform(d, plan);
    d->count_of_slot[slot] += b->n;
    return FTB_OK;
}

#define WOVEN_FROM 4
#define STRAIGHT_PAGES 64
#define STRAIGHT_RECORDS 8192

/* One record of the only stream that is not of the usual kind, or the end of its page. */
static int step_aside(ftb_decoder *d, ftb_stream *s)
{
    ftb_batch_clear(d->batch);
    d->at = 0;
    d->filled = FTB_OK;
    const uint64_t before = s->events;
    int status = ftb_step_page(s, s->select, d->batch, &d->report);
    if (s->events > before && (d->batch->n == 0 || d->plan_of_slot[ftb_slot(d->batch, 0)] == FTB_NO_PLAN))
        d->choosy = 1;
    if (status != FTB_OK || d->batch->n == 0)
        return status;
    status = gather_batch(d);
    d->at = status == FTB_NEED_PLAN ? 0 : d->batch->n;
    return status;
}

/* The only stream's records, page by page; `*seen` counts them. Comes back where the other way has to be taken for some. */
static int go_straight(ftb_decoder *d, uint64_t *seen, uint64_t max_records)
{
    ftb_stream *s = &d->merge.streams[0];
    const uint64_t before = s->events - *seen, last = s->pages + STRAIGHT_PAGES;
    int status = FTB_OK;
    while (status == FTB_OK && *seen < max_records && s->pages < last && !d->choosy && ftb_may_go_straight(s) &&
           (s->in_page || s->next_page < s->size)) {
        if (!s->in_page) {
            status = ftb_open_page(s, &d->report);
            continue;
        }
        const uint16_t full = ftb_walk_straight(s, d->plan_of_slot, d->groups);
        status = full != FTB_NO_PLAN ? gather_group(d, full) : step_aside(d, s);
        *seen = s->events - before;
    }
    s->last_ts = s->events > 0 ? (int64_t)s->data_ts : s->last_ts;
    return status;
}

/* All streams' records, as many as some dozen pages hold. */
static int merge_straight(ftb_decoder *d, uint64_t *seen, uint64_t max_records)
{
    ftb_merge *m = &d->merge;
    const ftb_source *root = &m->sources[2 * m->n_streams - 2];
    ftb_source *left = &m->sources[root->left], *right = &m->sources[root->right];
    int status = FTB_OK;
    for (const uint64_t stop = *seen + STRAIGHT_RECORDS; status == FTB_OK && *seen < stop && *seen < max_records;) {
        status = ftb_merge_have(m, root->left, &d->report);
        if (status == FTB_OK)
            status = ftb_merge_have(m, root->right, &d->report);
        if (status != FTB_OK)
            break;
        if (left->pos == left->batch->n && right->pos == right->batch->n)
            return FTB_DONE;
        const uint32_t before = left->pos + right->pos;
        const uint16_t plan = ftb_merge_straight(left, right, d, &d->new_slot);
        *seen += left->pos + right->pos - before;
        status = plan == FTB_NEW_PLAN ? FTB_NEED_PLAN : plan != FTB_NO_PLAN ? gather_group(d, plan) : FTB_OK;
    }
    return status;
}

/* Records of several kinds in turns, without batches; FTB_OK: go on by batches, which tell whether they still come so. (What comes in
 * runs is quicker by batches.) */
static int decode_woven(ftb_decoder *d, uint64_t *seen, uint64_t max_records)
{
    if (d->woven < WOVEN_FROM || d->choosy || d->orders != NULL)
        return FTB_OK;
    d->woven = WOVEN_FROM - 1;
    return d->merge.n_streams == 1 ? go_straight(d, seen, max_records) : merge_straight(d, seen, max_records);
}

static int decode(ftb_decoder *d, uint64_t max_records)
{
    for (uint64_t seen = 0; seen < max_records; seen += d->batch->n) {
        if (d->at == d->batch->n) {
            int status = decode_woven(d, &seen, max_records);
            if (status != FTB_OK || seen >= max_records)
                return status;
            ftb_batch_clear(d->batch);
            d->at = 0;
            d->filled = ftb_merge_fill(&d->merge, d->batch, &d->report);
            if (d->filled == FTB_NO_MEMORY)
                return d->filled;
            d->woven = is_uniform(d->batch) ? 0 : d->woven + (d->woven < WOVEN_FROM);
        }
        int gathered = gather_batch(d);
        if (gathered == FTB_NEED_PLAN)
            return gathered;
        d->at = d->batch->n;
        d->met += d->batch->n;
        if (gathered != FTB_OK || d->filled != FTB_OK)
            return gathered != FTB_OK ? gathered : d->filled;
    }
    return FTB_OK;
}

/* Where there is nothing to gather, and nothing to tell records apart by, streams count without making refs. */
static void count_only(ftb_decoder *d)
{
    for (uint32_t i = 0; i < d->merge.n_streams; i++) {
        const ftb_select *select = d->merge.streams[i].select;
        const int all = !select->has_window && select->pid_width == 0 && select->filter_of_slot == NULL;
        d->merge.streams[i].count_of_slot = all ? d->count_of_slot : NULL;
    }
}

/* Memory of a segment may go once FTB_NEED_SEGMENT is returned: everything that points into it has been gathered. */
int ftb_decode(ftb_decoder *d, uint64_t max_records)
{
    if (d->n_plans == 0 && !d->meets)
        count_only(d);
    for (uint32_t i = 0; i < d->n_plans; i++)
        make_room(d, (uint16_t)i); /* columns may have been taken */
    int status = decode(d, max_records), gathered = gather_groups(d);
    return gathered != FTB_OK ? gathered : status;
}
