/* The driver: merge a batch of refs, sort it by plan, gather, until a stream needs its next segment. */
#include "ftb_inline.h"
#include "ftbuf.h"

#define NONE 0xffffu

static int note_short(ftb_decoder *d, uint32_t k)
{
    const ftb_batch *b = d->batch;
    const ftb_stream *s = &d->merge.streams[ftb_stream_index(b, k)];
    return ftb_report_problem(&d->report, s, FTB_RECORD_SHORT, (size_t)(b->data[k] - s->data), ftb_len(b, k));
}

/* Leave out records shorter than their plan's fixed part; returns how many stay, or -1 when memory is out. */
static int64_t drop_short(ftb_decoder *d, const ftb_plan *plan, uint16_t *index, uint32_t n)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < n; i++) {
        uint32_t k = index[i];
        if (FTB_LIKELY(ftb_len(d->batch, k) >= plan->min_len))
            index[kept++] = (uint16_t)k;
        else if (note_short(d, k) != FTB_OK)
            return -1;
    }
    return kept;
}

/* Whether all records of the batch have one slot and one length; a reduction without branches, so that it is vectorised. */
static int is_uniform(const ftb_batch *b)
{
    uint64_t differ = 0;
    for (uint32_t i = 0; i < b->n; i++)
        differ |= b->meta[i] ^ b->meta[0];
    return differ >> 16 == 0; /* the low 16 bits are the stream */
}

/* The plan that every record of the batch goes to and is long enough for, or FTB_NO_PLAN. */
static uint16_t common_plan(const ftb_decoder *d)
{
    const ftb_batch *b = d->batch;
    uint16_t plan = d->plan_of_slot[ftb_slot(b, 0)];
    uint32_t min_len = plan == FTB_NO_PLAN ? 0 : d->plans[plan].min_len, differ = 0;
    for (uint32_t i = 0; i < b->n; i++)
        differ |= (uint32_t)(d->plan_of_slot[ftb_slot(b, i)] ^ plan) | (ftb_len(b, i) < min_len);
    return differ ? FTB_NO_PLAN : plan;
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
        uint16_t plan = d->plan_of_slot[ftb_slot(b, i)];
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
    uint16_t plan;
    if (is_uniform(b)) {
        uint16_t slot = ftb_slot(b, 0);
        d->count_of_slot[slot] += b->n;
        plan = d->plan_of_slot[slot];
        if (plan == FTB_NO_PLAN)
            return FTB_OK;
        plan = ftb_len(b, 0) < d->plans[plan].min_len ? FTB_NO_PLAN : plan;
    } else {
        for (uint32_t i = 0; i < b->n; i++)
            d->count_of_slot[ftb_slot(b, i)]++;
        plan = common_plan(d);
    }
    if (plan != FTB_NO_PLAN)
        return ftb_gather(&d->plans[plan], &d->context, b, NULL, b->n);
    return gather_mixed(d);
}

/* Memory of a segment may go once FTB_NEED_SEGMENT is returned: everything that points into it has been gathered. */
int ftb_decode(ftb_decoder *d, uint64_t max_records)
{
    uint64_t seen = 0;
    while (seen < max_records) {
        d->batch->n = 0;
        int status = ftb_merge_fill(&d->merge, d->batch, &d->report);
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
