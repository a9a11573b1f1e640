/* The driver: merge a batch of refs, group it by plan, gather, until a stream needs its next segment. */
#include "ftb_inline.h"
#include "ftbuf.h"

static int note_short(ftb_decoder *d, uint32_t k)
{
    const ftb_batch *b = d->batch;
    const ftb_stream *s = &d->merge.streams[ftb_stream_index(b, k)];
    return ftb_report_problem(&d->report, s, FTB_RECORD_SHORT, (size_t)(b->data[k] - s->data), ftb_len(b, k));
}

/* Whether all records of the batch have one slot and one length. */
static int is_uniform(const ftb_batch *b)
{
    return b->differ >> 16 == 0; /* the low 16 bits are the stream */
}

static int gather_group(ftb_decoder *d, uint16_t plan)
{
    ftb_group *g = &d->groups[plan];
    const ftb_refs refs = {g->ts, g->data, g->meta, g->differ, g->n};
    g->n = 0;
    g->differ = 0;
    return refs.n > 0 ? ftb_gather(&d->plans[plan], &d->context, &refs) : FTB_OK;
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

/* Every record to the group of its plan; full groups are gathered. Records shorter than the fixed part are left out. */
static int distribute(ftb_decoder *d)
{
    const ftb_batch *b = d->batch;
    for (uint32_t i = 0; i < b->n; i++) {
        const uint64_t meta = b->meta[i];
        const uint16_t slot = ftb_slot(b, i), plan = d->plan_of_slot[slot];
        d->count_of_slot[slot]++;
        if (plan == FTB_NO_PLAN)
            continue;
        if (FTB_UNLIKELY(ftb_meta_len(meta) < d->plans[plan].min_len)) {
            if (note_short(d, i) != FTB_OK)
                return FTB_NO_MEMORY;
            continue;
        }
        ftb_group *g = &d->groups[plan];
        g->ts[g->n] = b->ts[i];
        g->data[g->n] = b->data[i];
        g->meta[g->n] = meta;
        g->differ |= meta ^ g->meta[0];
        if (++g->n == FTB_GROUP) {
            int status = gather_group(d, plan);
            if (status != FTB_OK)
                return status;
        }
    }
    return FTB_OK;
}

/* Records of one event and one length need no groups. */
static int gather_uniform(ftb_decoder *d, uint16_t plan)
{
    const ftb_batch *b = d->batch;
    int status = gather_group(d, plan); /* those that came before */
    for (uint32_t at = 0; at < b->n && status == FTB_OK; at += FTB_GROUP) {
        uint32_t n = b->n - at < FTB_GROUP ? b->n - at : FTB_GROUP;
        const ftb_refs refs = {b->ts + at, b->data + at, b->meta + at, b->differ, n};
        status = ftb_gather(&d->plans[plan], &d->context, &refs);
    }
    return status;
}

static int gather_batch(ftb_decoder *d)
{
    const ftb_batch *b = d->batch;
    if (b->n == 0)
        return FTB_OK;
    if (!is_uniform(b))
        return distribute(d);
    const uint16_t slot = ftb_slot(b, 0), plan = d->plan_of_slot[slot];
    if (plan != FTB_NO_PLAN && ftb_len(b, 0) < d->plans[plan].min_len)
        return distribute(d);
    d->count_of_slot[slot] += b->n;
    return plan != FTB_NO_PLAN ? gather_uniform(d, plan) : FTB_OK;
}

static int decode(ftb_decoder *d, uint64_t max_records)
{
    for (uint64_t seen = 0; seen < max_records; seen += d->batch->n) {
        ftb_batch_clear(d->batch);
        int status = ftb_merge_fill(&d->merge, d->batch, &d->report);
        if (status == FTB_NO_MEMORY)
            return status;
        int gathered = gather_batch(d);
        if (gathered != FTB_OK || status != FTB_OK)
            return gathered != FTB_OK ? gathered : status;
    }
    return FTB_OK;
}

/* Memory of a segment may go once FTB_NEED_SEGMENT is returned: everything that points into it has been gathered. */
int ftb_decode(ftb_decoder *d, uint64_t max_records)
{
    int status = decode(d, max_records), gathered = gather_groups(d);
    return gathered != FTB_OK ? gathered : status;
}
