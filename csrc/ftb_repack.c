/* Sub-buffers in, sub-buffers out: those whose every record is wanted are copied whole, the wanted records of others are packed anew. */
#include "ftb_inline.h"
#include "ftb_walk.h"

#define MAX_EXTENDED (1ULL << 59) /* what a time extend's two words can hold */

static void store32(uint8_t *p, uint32_t v, int big)
{
    v = big == FTB_HOST_BIG ? v : __builtin_bswap32(v);
    memcpy(p, &v, sizeof v);
}

static void store64(uint8_t *p, uint64_t v, int big)
{
    v = big == FTB_HOST_BIG ? v : __builtin_bswap64(v);
    memcpy(p, &v, sizeof v);
}

/* A kernel long. */
static void store_long(uint8_t *p, int64_t v, const ftb_abi *abi)
{
    if (abi->commit_size == 8)
        store64(p, (uint64_t)v, abi->big_endian);
    else
        store32(p, (uint32_t)v, abi->big_endian);
}

static uint32_t with_delta(uint32_t word, uint32_t delta, int big)
{
    return big ? (word & ~DELTA_MASK) | delta : (word & 31) | delta << 5;
}

/* ---- the page being built ---- */

/* The count of lost events stands after the records. */
static size_t count_size(const ftb_repack *r)
{
    return r->page_loss.any && r->page_loss.count >= 0 ? r->stream.abi->commit_size : 0;
}

static size_t room(const ftb_repack *r)
{
    const ftb_abi *abi = r->stream.abi;
    return r->page_size - abi->data_offset - r->used - count_size(r);
}

/* Begin a page whose first record has this time: it carries the word of what was lost before it. */
static void begin_page(ftb_repack *r, uint64_t ts)
{
    r->building = 1;
    r->base = r->ts = ts;
    r->used = 0;
    r->page_loss = r->loss;
    r->loss.any = 0;
}

int ftb_repack_flush(ftb_repack *r)
{
    const ftb_abi *abi = r->stream.abi;
    if (!r->building)
        return FTB_OK;
    r->building = 0;
    r->rebuilt++;
    uint32_t commit = (uint32_t)r->used;
    size_t end = abi->data_offset + r->used, count = count_size(r);
    if (r->page_loss.any)
        commit |= MISSED_EVENTS;
    if (count != 0) {
        commit |= MISSED_STORED;
        store_long(r->page + end, r->page_loss.count, abi);
    }
    store64(r->page, r->base, abi->big_endian);
    store_long(r->page + 8, (int32_t)commit, abi); /* sign-extended, as the kernel does (K:ring_buffer_read_page) */
    memset(r->page + end + count, 0, r->page_size - end - count);
    return ftb_column_append(&r->out, r->page, r->page_size);
}

static void put_time_extend(ftb_repack *r, uint64_t delta)
{
    const ftb_abi *abi = r->stream.abi;
    uint8_t *p = r->page + abi->data_offset + r->used;
    const int big = abi->big_endian;
    uint32_t type = !abi->old_header ? TYPE_TIME_EXTEND : big ? OLD_TYPE_TIME_EXTEND << 3 : OLD_TYPE_TIME_EXTEND;
    store32(p, with_delta(big ? type << DELTA_BITS : type, (uint32_t)(delta & DELTA_MASK), big), big);
    store32(p + HEADER, (uint32_t)(delta >> DELTA_BITS), big);
    r->used += EXTENDED;
}

/* Append one data record, as it is but for its time delta. */
static int put_record(ftb_repack *r, const uint8_t *header, size_t total, uint64_t ts)
{
    const ftb_abi *abi = r->stream.abi;
    uint64_t delta = ts - r->ts;
    int fresh = !r->building || r->loss.any || ts < r->ts || delta >= MAX_EXTENDED;
    size_t extend = delta > DELTA_MASK ? EXTENDED : 0;
    if (fresh || total + extend > room(r)) {
        if (ftb_repack_flush(r) != FTB_OK)
            return FTB_NO_MEMORY;
        begin_page(r, ts);
        delta = extend = 0;
        if (total > room(r))
            r->page_loss.count = -1; /* no room for the count beside it */
    }
    if (extend)
        put_time_extend(r, delta);
    uint8_t *p = r->page + abi->data_offset + r->used;
    memcpy(p, header, total);
    delta = extend ? 0 : delta;
    store32(p, with_delta(ftb_load32(header, abi->big_endian), (uint32_t)delta, abi->big_endian), abi->big_endian);
    r->used += total;
    r->ts = ts;
    r->records++;
    return FTB_OK;
}

/* ---- the page being read ---- */

static int64_t corrected(const ftb_stream *s, uint64_t raw)
{
    return s->clock == NULL ? (int64_t)raw : ftb_clock_apply(s->clock, raw);
}

static int wanted(const ftb_repack *r, const ftb_record *record)
{
    const ftb_abi *abi = r->stream.abi;
    uint16_t slot = ftb_record_slot(abi, &r->select, record->payload);
    if (slot == FTB_NO_SLOT)
        return 0;
    int64_t ts = corrected(&r->stream, record->ts);
    uint32_t len = (uint32_t)record->len;
    return ftb_record_wanted(abi, &r->select, ts, record->payload, len) &&
           ftb_filter_matches(&r->select, slot, r->stream.cpu, ts, record->payload, len);
}

/* Walk the open page: whether it has records, all of them wanted, and no defect. The stream is left where it was. */
static int all_wanted(ftb_repack *r, uint64_t *n)
{
    ftb_stream *s = &r->stream;
    const uint8_t *cur = s->cur;
    uint64_t ts = s->ts;
    ftb_record record;
    int ends = 0, yes = !s->clipped, status = FTB_OK;
    for (*n = 0; yes && !ends;) {
        status = ftb_next_record(s, &record, &ends);
        if (!ends && record.payload != NULL) {
            yes = wanted(r, &record);
            ++*n;
        }
    }
    s->cur = cur;
    s->ts = ts;
    return yes && status == FTB_OK && *n > 0;
}

static void add_loss(ftb_repack_loss *loss, int64_t count, const ftb_abi *abi)
{
    int64_t most = abi->commit_size == 8 ? INT64_MAX : UINT32_MAX;
    int64_t before = loss->any ? loss->count : 0;
    loss->any = 1;
    if (count < 0 || before < 0)
        loss->count = -1;
    else
        loss->count = count > most - before ? most : before + count;
}

/* What was lost before the open page waits for the next record that is kept; a gap outside the window is not told of. */
static void take_loss(ftb_repack *r)
{
    ftb_stream *s = &r->stream;
    const ftb_loss *row = (const ftb_loss *)(const void *)(s->lost_pending ? r->report.losses.data : NULL);
    ftb_record record = {0};
    int ends = 0;
    const uint8_t *cur = s->cur;
    uint64_t ts = s->ts;
    if (row == NULL)
        return;
    s->lost_pending = 0;
    while (!ends && record.payload == NULL)
        ftb_next_record(s, &record, &ends);
    int64_t after = corrected(s, ends ? ts : record.ts);
    s->cur = cur;
    s->ts = ts;
    if (r->select.has_window && (after < r->select.start || after >= r->select.end))
        return;
    add_loss(&r->loss, row->count, s->abi);
}

static int copy_page(ftb_repack *r, uint64_t n)
{
    ftb_stream *s = &r->stream;
    if (ftb_repack_flush(r) != FTB_OK)
        return FTB_NO_MEMORY;
    s->in_page = 0;
    r->copied++;
    r->records += n;
    return ftb_column_append(&r->out, s->data + s->page, r->page_size);
}

static int rebuild_page(ftb_repack *r)
{
    ftb_stream *s = &r->stream;
    ftb_record record;
    for (;;) {
        int ends;
        const uint8_t *header = s->cur;
        int status = ftb_next_record(s, &record, &ends);
        if (ends)
            return ftb_close_page(s, status, s->cur, &r->report);
        if (record.payload == NULL || !wanted(r, &record))
            continue;
        if (put_record(r, header, record.total, record.ts) != FTB_OK)
            return FTB_NO_MEMORY;
    }
}

static int is_whole(const ftb_stream *s)
{
    return s->next_page - s->page == s->abi->subbuf_size;
}

static int repack_page(ftb_repack *r)
{
    ftb_stream *s = &r->stream;
    uint64_t n;
    r->report.losses.size = 0;
    if (ftb_open_page(s, &r->report) != FTB_OK)
        return FTB_NO_MEMORY;
    if (!s->in_page)
        return FTB_OK;
    if (!r->loss.any && is_whole(s) && s->abi->subbuf_size == r->page_size && all_wanted(r, &n))
        return copy_page(r, n);
    take_loss(r);
    return rebuild_page(r);
}

int ftb_repack_pages(ftb_repack *r, uint32_t max_pages)
{
    ftb_stream *s = &r->stream;
    if (r->page_size < s->abi->subbuf_size)
        return FTB_BAD_PLAN; /* a record might not fit */
    for (uint32_t i = 0; i < max_pages; i++) {
        if (s->next_page >= s->size)
            return FTB_NEED_SEGMENT;
        if (repack_page(r) != FTB_OK)
            return FTB_NO_MEMORY;
    }
    return FTB_OK;
}
