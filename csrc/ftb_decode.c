/* The driver: merge a batch of refs, sort it by plan, gather, until a stream needs its next segment. */
#include "ftb_inline.h"
#include "ftbuf.h"

#define NONE 0xffffu

static int note_short(ftb_decoder *d, uint32_t k)
{
    const ftb_batch *b = d->batch;
    const ftb_stream *s = &d->merge.streams[b->stream[k] & ~FTB_LOST_BEFORE];
    return ftb_report_problem(&d->report, s, FTB_RECORD_SHORT, (size_t)(b->data[k] - s->data), b->len[k]);
}

/* Leave out records shorter than their plan's fixed part; returns how many stay, or -1 when memory is out. */
static int64_t drop_short(ftb_decoder *d, const ftb_plan *plan, uint16_t *index, uint32_t n)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < n; i++) {
        uint32_t k = index[i];
        if (FTB_LIKELY(d->batch->len[k] >= plan->min_len))
            index[kept++] = (uint16_t)k;
        else if (note_short(d, k) != FTB_OK)
            return -1;
    }
    return kept;
}

static int all_long_enough(const ftb_batch *b, uint32_t min_len)
{
    uint32_t shortest = UINT32_MAX;
    for (uint32_t i = 0; i < b->n; i++)
        shortest = b->len[i] < shortest ? b->len[i] : shortest;
    return shortest >= min_len;
}

/* The plan that every record of the batch goes to, or NULL when they differ. */
static ftb_plan *common_plan(const ftb_decoder *d)
{
    const ftb_batch *b = d->batch;
    uint16_t plan = d->plan_of_slot[b->slot[0]];
    for (uint32_t i = 1; i < b->n; i++)
        if (b->slot[i] != b->slot[0] && d->plan_of_slot[b->slot[i]] != plan)
            return NULL;
    return plan == FTB_NO_PLAN ? NULL : &d->plans[plan];
}

static int gather_group(ftb_decoder *d, ftb_plan *plan, uint16_t *index, uint32_t n)
{
    int64_t kept = drop_short(d, plan, index, n);
    if (kept <= 0)
        return kept < 0 ? FTB_NO_MEMORY : FTB_OK;
    return ftb_gather(plan, &d->context, d->batch, index, (uint32_t)kept);
}

/* Sort the batch's places into one list per plan, last first, so that each list is in batch order. Returns the plans met. */
static uint32_t sort_by_plan(ftb_decoder *d, uint16_t *next, uint16_t *touched)
{
    const ftb_batch *b = d->batch;
    uint32_t n = 0;
    for (uint32_t i = b->n; i-- > 0;) {
        uint16_t plan = d->plan_of_slot[b->slot[i]];
        if (plan == FTB_NO_PLAN)
            continue;
        next[i] = d->group_head[plan];
        if (next[i] == NONE)
            touched[n++] = plan;
        d->group_head[plan] = (uint16_t)i;
    }
    return n;
}

static int gather_mixed(ftb_decoder *d)
{
    uint16_t next[FTB_BATCH], touched[FTB_BATCH], index[FTB_BATCH];
    uint32_t plans = sort_by_plan(d, next, touched);
    int status = FTB_OK;
    for (uint32_t i = 0; i < plans; i++) {
        uint32_t n = 0;
        for (uint32_t k = d->group_head[touched[i]]; k != NONE; k = next[k])
            index[n++] = (uint16_t)k;
        d->group_head[touched[i]] = NONE; /* also after a failure: the heads stay empty between batches */
        if (status == FTB_OK)
            status = gather_group(d, &d->plans[touched[i]], index, n);
    }
    return status;
}

static int gather_batch(ftb_decoder *d)
{
    const ftb_batch *b = d->batch;
    if (b->n == 0)
        return FTB_OK;
    for (uint32_t i = 0; i < b->n; i++)
        d->count_of_slot[b->slot[i]]++;
    ftb_plan *plan = common_plan(d);
    if (plan != NULL && all_long_enough(b, plan->min_len))
        return ftb_gather(plan, &d->context, b, NULL, b->n);
    return gather_mixed(d);
}

/* Memory of a segment may go once FTB_NEED_SEGMENT is returned: everything that points into it has been gathered. */
int ftb_decode(ftb_decoder *d, uint64_t max_records)
{
    uint64_t seen = 0;
    while (seen < max_records) {
        d->batch->n = 0;
        int status = ftb_merge_fill(&d->merge, &d->select, d->batch, &d->report);
        if (status == FTB_NO_MEMORY)
            return status;
        int gathered = gather_batch(d);
        if (gathered != FTB_OK)
            return gathered;
        seen += d->batch->n;
        if (status != FTB_OK)
            return status;
    }
    return FTB_OK;
}
