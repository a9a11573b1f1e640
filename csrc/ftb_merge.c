/* k-way merge of record refs by (time, stream index). A stream's own order is kept even where its clock steps back. */
#include "ftb_inline.h"
#include "ftbuf.h"

static int64_t head_ts(const ftb_merge *m, uint32_t stream)
{
    const ftb_stream *s = &m->streams[stream];
    return s->batch->ts[s->pos];
}

static int before(const ftb_merge *m, uint32_t a, uint32_t b)
{
    int64_t ta = head_ts(m, a), tb = head_ts(m, b);
    return ta < tb || (ta == tb && a < b);
}

static void sift_down(ftb_merge *m, uint32_t i)
{
    uint32_t *heap = m->heap, moving = heap[i];
    for (;;) {
        uint32_t child = 2 * i + 1;
        if (child >= m->heap_n)
            break;
        if (child + 1 < m->heap_n && before(m, heap[child + 1], heap[child]))
            child++;
        if (!before(m, heap[child], moving))
            break;
        heap[i] = heap[child];
        i = child;
    }
    heap[i] = moving;
}

static void push(ftb_merge *m, uint32_t stream)
{
    uint32_t i = m->heap_n++;
    while (i > 0 && before(m, stream, m->heap[(i - 1) / 2])) {
        m->heap[i] = m->heap[(i - 1) / 2];
        i = (i - 1) / 2;
    }
    m->heap[i] = stream;
}

/* Refill an empty stream. FTB_OK: it has records; FTB_DONE: it never will again; FTB_NEED_SEGMENT. */
static int refill(ftb_stream *s, ftb_report *report)
{
    ftb_batch_clear(s->batch);
    s->pos = 0;
    int status = ftb_scan(s, s->select, s->batch, report);
    if (status == FTB_NO_MEMORY || s->batch->n > 0)
        return status == FTB_NO_MEMORY ? status : FTB_OK;
    if (status == FTB_NEED_SEGMENT && s->last_segment)
        return FTB_DONE;
    return status;
}

/* How many of the top stream's records come before every other stream's head. */
static uint32_t run_length(const ftb_merge *m, uint32_t top, uint32_t room)
{
    const ftb_stream *s = &m->streams[top];
    uint32_t have = s->batch->n - s->pos, limit = have < room ? have : room;
    if (m->heap_n == 1)
        return limit;
    uint32_t rival = m->heap[1];
    if (m->heap_n > 2 && before(m, m->heap[2], rival))
        rival = m->heap[2];
    int64_t bound = head_ts(m, rival);
    const int64_t *ts = s->batch->ts + s->pos;
    uint32_t n = 1; /* the head itself won already */
    if (top < rival)
        while (n < limit && ts[n] <= bound)
            n++;
    else
        while (n < limit && ts[n] < bound)
            n++;
    return n;
}

static void move_refs(ftb_batch *out, const ftb_stream *s, uint32_t n)
{
    const ftb_batch *in = s->batch;
    uint32_t from = s->pos, to = out->n;
    memcpy(out->ts + to, in->ts + from, n * sizeof *in->ts);
    memcpy(out->data + to, in->data + from, n * sizeof *in->data);
    memcpy(out->meta + to, in->meta + from, n * sizeof *in->meta);
    out->differ |= in->differ | (out->meta[0] ^ out->meta[to]);
    out->n = to + n;
}

/* Bring in streams that have no records yet; every one must be known before the least can be. */
static int start(ftb_merge *m, ftb_report *report)
{
    while (m->started < m->n_streams) {
        int status = refill(&m->streams[m->started], report);
        if (status == FTB_OK)
            push(m, m->started);
        else if (status != FTB_DONE) {
            m->need = m->started;
            return status;
        }
        m->started++;
    }
    return FTB_OK;
}

/* The top stream ran dry: refill it, or drop it from the heap when it is at its end. */
static int advance(ftb_merge *m, ftb_report *report)
{
    uint32_t top = m->heap[0];
    ftb_stream *s = &m->streams[top];
    if (s->pos == s->batch->n) {
        int status = refill(s, report);
        if (status == FTB_DONE) {
            m->heap[0] = m->heap[--m->heap_n];
            if (m->heap_n == 0)
                return FTB_OK;
        } else if (status != FTB_OK) {
            m->need = top;
            return status;
        }
    }
    sift_down(m, 0);
    return FTB_OK;
}

/* One stream needs no merging: its records go straight into the output. */
static int fill_from_one(ftb_merge *m, ftb_batch *out, ftb_report *report)
{
    ftb_stream *s = &m->streams[0];
    int status = ftb_scan(s, s->select, out, report);
    m->need = 0;
    return status == FTB_NEED_SEGMENT && s->last_segment ? FTB_DONE : status;
}

int ftb_merge_fill(ftb_merge *m, ftb_batch *out, ftb_report *report)
{
    if (m->n_streams == 1)
        return fill_from_one(m, out, report);
    int status = start(m, report);
    while (status == FTB_OK && out->n < FTB_BATCH) {
        if (m->heap_n == 0)
            return FTB_DONE;
        ftb_stream *s = &m->streams[m->heap[0]];
        if (s->pos < s->batch->n) { /* else it waits for the segment that was asked for */
            uint32_t n = run_length(m, m->heap[0], FTB_BATCH - out->n);
            move_refs(out, s, n);
            s->pos += n;
        }
        status = advance(m, report);
    }
    return status;
}
