/* Streams of record refs into one, in the order (time, stream index): a tree of two-way merges whose leaves are the streams.
 *
 * A stream's own order is kept even where its clock steps back: a merge only ever compares the heads. Records of several CPUs that
 * take turns are taken one by one; runs of one CPU are moved eight at a time. */
#include "ftb_inline.h"
#include "ftbuf.h"

/* The sources of streams low to high - 1, as one; `next` is the first free place for merged ones. */
static uint32_t plant(ftb_merge *m, uint32_t low, uint32_t high, uint32_t *next)
{
    if (high - low == 1)
        return low;
    uint32_t middle = low + (high - low) / 2;
    uint32_t left = plant(m, low, middle, next), right = plant(m, middle, high, next), merged = (*next)++;
    m->sources[merged].left = left;
    m->sources[merged].right = right;
    return merged;
}

void ftb_merge_plant(ftb_merge *m)
{
    uint32_t next = m->n_streams;
    if (m->n_streams > 0)
        (void)plant(m, 0, m->n_streams, &next);
}

static int fill(ftb_merge *m, uint32_t source, ftb_batch *out, ftb_report *report);

/* Have the source's next record at hand, or know that there is none. What waits here is used up before a segment is asked for:
 * when FTB_NEED_SEGMENT has come through to the caller, no source between the stream and the caller holds a ref any more. */
int ftb_merge_have(ftb_merge *m, uint32_t source, ftb_report *report)
{
    ftb_source *s = &m->sources[source];
    if (s->pos < s->batch->n || s->done)
        return FTB_OK;
    ftb_batch_clear(s->batch);
    s->pos = 0;
    int status = fill(m, source, s->batch, report);
    if (status == FTB_NO_MEMORY)
        return status;
    s->done = status == FTB_DONE;
    return s->batch->n > 0 || s->done ? FTB_OK : status;
}

static void move_refs(ftb_batch *out, uint32_t to, const ftb_batch *in, uint32_t from, uint32_t n)
{
    memcpy(out->ts + to, in->ts + from, n * sizeof *in->ts);
    memcpy(out->data + to, in->data + from, n * sizeof *in->data);
    memcpy(out->meta + to, in->meta + from, n * sizeof *in->meta);
}

/* After refs of `in` were added to `out`. */
static void add_differences(ftb_batch *out, const ftb_batch *in)
{
    out->differ |= in->differ | (out->meta[0] ^ in->meta[0]);
}

/* All that waits in one source, when the other has ended. */
static void move_rest(ftb_source *s, ftb_batch *out)
{
    uint32_t n = s->batch->n - s->pos, room = FTB_BATCH - out->n;
    n = n < room ? n : room;
    move_refs(out, out->n, s->batch, s->pos, n);
    s->pos += n;
    out->n += n;
    add_differences(out, s->batch);
}

#define AT_ONCE 8

/* Whether the next records of `in` all come before `bound`; a look at the last one first tells most that do not. */
FTB_ALWAYS_INLINE int run_before(const ftb_batch *in, uint32_t from, int64_t bound, int or_equal)
{
    if (in->n - from < AT_ONCE || in->ts[from + AT_ONCE - 1] > bound)
        return 0;
    int before = 1;
    for (uint32_t i = from; i < from + AT_ONCE; i++)
        before &= in->ts[i] < bound || (or_equal && in->ts[i] == bound);
    return before;
}

/* Records that can be taken without looking whether there are more: each step takes one of either source. */
FTB_ALWAYS_INLINE uint32_t least(uint32_t a, uint32_t b, uint32_t c, uint32_t d)
{
    a = a < b ? a : b;
    c = c < d ? c : d;
    return a < c ? a : c;
}

/* Until one source is used up or `out` is full. Equal times: the left one, whose streams have the lower indices. */
static void interleave(ftb_source *left, ftb_source *right, ftb_batch *out)
{
    const ftb_batch *a = left->batch, *b = right->batch;
    uint32_t i = left->pos, j = right->pos, n = out->n;
    while (i < a->n && j < b->n && n < FTB_BATCH) {
        if (FTB_BATCH - n >= AT_ONCE && run_before(a, i, b->ts[j], 1)) {
            move_refs(out, n, a, i, AT_ONCE);
            i += AT_ONCE, n += AT_ONCE;
            continue;
        }
        if (FTB_BATCH - n >= AT_ONCE && run_before(b, j, a->ts[i], 0)) {
            move_refs(out, n, b, j, AT_ONCE);
            j += AT_ONCE, n += AT_ONCE;
            continue;
        }
        for (const uint32_t stop = n + least(AT_ONCE, FTB_BATCH - n, a->n - i, b->n - j); n < stop; n++) {
            const uint32_t is_right = b->ts[j] < a->ts[i];
            const ftb_batch *from = is_right ? b : a;
            const uint32_t at = is_right ? j : i;
            out->ts[n] = from->ts[at];
            out->data[n] = from->data[at];
            out->meta[n] = from->meta[at];
            i += !is_right;
            j += is_right;
        }
    }
    left->pos = i;
    right->pos = j;
    out->n = n;
    add_differences(out, a);
    add_differences(out, b);
}

static int fill_from_two(ftb_merge *m, uint32_t source, ftb_batch *out, ftb_report *report)
{
    ftb_source *left = &m->sources[m->sources[source].left], *right = &m->sources[m->sources[source].right];
    while (out->n < FTB_BATCH) {
        int status = ftb_merge_have(m, m->sources[source].left, report);
        if (status == FTB_OK)
            status = ftb_merge_have(m, m->sources[source].right, report);
        if (status != FTB_OK)
            return status;
        const int any_left = left->pos < left->batch->n, any_right = right->pos < right->batch->n;
        if (!any_left && !any_right)
            return FTB_DONE;
        if (any_left && any_right)
            interleave(left, right, out);
        else
            move_rest(any_left ? left : right, out);
    }
    return FTB_OK;
}

static int fill_from_stream(ftb_merge *m, uint32_t stream, ftb_batch *out, ftb_report *report)
{
    ftb_stream *s = &m->streams[stream];
    int status = ftb_scan(s, s->select, out, report);
    while (status == FTB_NEED_SEGMENT && ftb_stream_next_of_block(s))
        status = ftb_scan(s, s->select, out, report);
    m->need = stream;
    return status == FTB_NEED_SEGMENT && s->last_segment ? FTB_DONE : status;
}

static int fill(ftb_merge *m, uint32_t source, ftb_batch *out, ftb_report *report)
{
    return source < m->n_streams ? fill_from_stream(m, source, out, report) : fill_from_two(m, source, out, report);
}

int ftb_merge_fill(ftb_merge *m, ftb_batch *out, ftb_report *report)
{
    return m->n_streams == 0 ? FTB_DONE : fill(m, 2 * m->n_streams - 2, out, report);
}
