/* The walk over sub-buffers: page bytes -> record refs. Pure: reads the page, writes the batch, keeps its state in ftb_stream. */
#include "ftb_expr.h"
#include "ftb_inline.h"
#include "ftb_walk.h"

/* K:ring_buffer.c TS_MSB: the bits that an absolute stamp does not store. */
#define STAMP_TOP (0xf8ULL << 56)
#define STAMP_STEP (1ULL << 59)

int ftb_report_problem(ftb_report *report, const ftb_stream *s, int status, size_t at, size_t bytes)
{
    ftb_problem row = {.offset = s->file_offset + at, .bytes = bytes, .stream = s->index, .status = (uint32_t)status};
    return ftb_column_append(&report->problems, &row, sizeof row);
}

static void begin_segment(ftb_stream *s, const uint8_t *data, size_t size, uint64_t file_offset, int last)
{
    s->consumed += s->size;
    s->data = data;
    s->size = size;
    s->file_offset = file_offset;
    s->last_segment = (uint8_t)last;
    s->next_page = 0;
    s->in_page = 0;
}

void ftb_stream_feed(ftb_stream *s, const uint8_t *data, size_t size, uint64_t file_offset, int last)
{
    s->n_block = s->next_in_block = 0;
    begin_segment(s, data, size, file_offset, last);
}

void ftb_stream_feed_block(ftb_stream *s, const ftb_segment *block, uint32_t n)
{
    s->block = block;
    s->n_block = n;
    s->next_in_block = 0;
    (void)ftb_stream_next_of_block(s);
}

int ftb_stream_next_of_block(ftb_stream *s)
{
    if (s->next_in_block == s->n_block)
        return 0;
    const ftb_segment *next = &s->block[s->next_in_block++];
    begin_segment(s, next->data, next->size, next->file_offset, 0);
    return 1;
}

uint64_t ftb_stream_file_offset(const ftb_stream *s, const uint8_t *at)
{
    for (uint32_t i = 0; i < s->next_in_block; i++)
        if ((uintptr_t)at - (uintptr_t)s->block[i].data < s->block[i].size)
            return s->block[i].file_offset + (uint64_t)(at - s->block[i].data);
    return s->file_offset + (uint64_t)(at - s->data);
}

/* ---- pages ---- */

typedef struct {
    uint64_t ts;
    uint32_t flags;
    uint32_t commit; /* bytes of data, without flags */
} page_header;

/* Only the low 32 bits of commit count: the flags are sign-extended on 64-bit kernels (K:ring_buffer_read_page). */
static page_header read_header(const ftb_abi *abi, const uint8_t *page)
{
    const uint8_t *commit = page + 8;
    if (abi->big_endian && abi->commit_size == 8)
        commit += 4;
    uint32_t word = ftb_load32(commit, abi->big_endian);
    page_header h = {.ts = ftb_load64(page, abi->big_endian), .flags = word, .commit = word & ~(MISSED_EVENTS | MISSED_STORED)};
    return h;
}

static int64_t corrected(const ftb_clock *clock, uint64_t raw)
{
    return clock == NULL ? (int64_t)raw : ftb_clock_apply(clock, raw);
}

/* The count of lost events stands right after the data, one kernel long; -1 when it is not known. */
static int64_t lost_count(const ftb_stream *s, const page_header *h, size_t available, int *cut)
{
    const ftb_abi *abi = s->abi;
    if (!(h->flags & MISSED_STORED))
        return -1;
    size_t at = (size_t)abi->data_offset + h->commit;
    if (at > available || available - at < abi->commit_size) {
        *cut = 1;
        return -1;
    }
    uint64_t count = ftb_load(s->data + s->page + at, abi->commit_size, abi->big_endian);
    return count > INT64_MAX ? -1 : (int64_t)count; /* no kernel counts that far */
}

static int note_loss(ftb_stream *s, const page_header *h, size_t available, ftb_report *report)
{
    int cut = 0;
    ftb_loss row = {.before = s->last_ts, .after = corrected(s->clock, h->ts), .stream = s->index};
    row.count = lost_count(s, h, available, &cut);
    s->missed_pages++;
    s->lost_pending = 1;
    if (cut && ftb_report_problem(report, s, FTB_LOST_COUNT_CUT, s->page, 0) != FTB_OK)
        return FTB_NO_MEMORY;
    return ftb_column_append(&report->losses, &row, sizeof row);
}

int ftb_open_page(ftb_stream *s, ftb_report *report)
{
    const ftb_abi *abi = s->abi;
    size_t left = s->size - s->next_page;
    size_t available = left < abi->subbuf_size ? left : abi->subbuf_size;
    s->page = s->next_page;
    s->next_page += available;
    s->lost_pending = 0;
    if (available < abi->data_offset)
        return ftb_report_problem(report, s, FTB_PAGE_SHORT, s->page, available);
    s->pages++;
    const uint8_t *page = s->data + s->page;
    page_header h = read_header(abi, page);
    if (h.commit > abi->subbuf_size - abi->data_offset)
        return ftb_report_problem(report, s, FTB_COMMIT_TOO_LARGE, s->page, available);
    size_t data = available - abi->data_offset;
    s->clipped = h.commit > data;
    s->cur = page + abi->data_offset;
    s->end = s->cur + (s->clipped ? data : h.commit);
    s->ts = h.ts;
    s->backwards |= corrected(s->clock, h.ts) < s->last_ts;
    s->in_page = 1;
    return h.flags & MISSED_EVENTS ? note_loss(s, &h, available, report) : FTB_OK;
}

int ftb_close_page(ftb_stream *s, int status, const uint8_t *at, ftb_report *report)
{
    s->in_page = 0;
    s->cur = at;
    if (s->clipped)
        status = FTB_PAGE_CUT; /* whatever the cut went through */
    if (status == FTB_OK)
        return FTB_OK;
    return ftb_report_problem(report, s, status, (size_t)(at - s->data), (size_t)(s->end - at));
}

/* ---- records ---- */

/* K:ring_buffer.c rb_fix_abs_ts: only 59 bits are stored, the rest comes from the running stamp. */
FTB_ALWAYS_INLINE uint64_t absolute_stamp(uint64_t stored, uint64_t running)
{
    uint64_t top = running & STAMP_TOP;
    if (top == 0)
        return stored;
    stored |= top;
    return stored < running ? stored + STAMP_STEP : stored;
}

/* The writer's stamp advanced by a padding's delta, unless it is the 1 that only marks it as sized (K:check_buffer). */
FTB_ALWAYS_INLINE uint64_t padding_delta(uint32_t delta)
{
    return delta == 1 ? 0 : delta;
}

FTB_ALWAYS_INLINE uint64_t round4(uint32_t n)
{
    return ((uint64_t)n + 3) & ~(uint64_t)3;
}

/* Where a sized record ends: array[0] counts itself and is rounded up to words, as the writer does. */
FTB_ALWAYS_INLINE ftb_record sized(const uint8_t *p, size_t left, int big, int cut_status)
{
    ftb_record r = {0};
    if (left < EXTENDED) {
        r.status = cut_status;
        return r;
    }
    uint32_t length = ftb_load32(p + HEADER, big);
    r.total = HEADER + round4(length);
    if (length < HEADER)
        r.status = FTB_LENGTH_TOO_SMALL;
    else if (r.total > left)
        r.status = cut_status;
    r.payload = p + EXTENDED;
    r.len = length - HEADER;
    return r;
}

static ftb_record sized_padding(const uint8_t *p, size_t left, uint64_t ts, uint32_t delta, int big)
{
    ftb_record r = {.ends_page = 1}; /* delta 0: nothing but emptiness follows, array[0] is not valid */
    if (delta != 0) {
        r = sized(p, left, big, FTB_PADDING_CUT);
        r.payload = NULL;
    }
    r.ts = ts + padding_delta(delta);
    return r;
}

/* Time extend and time stamp: 27 low bits in the header, the rest in the second word. */
static ftb_record extended_time(ftb_stream *s, const uint8_t *p, size_t left, uint64_t ts, uint32_t type, uint32_t delta, int big)
{
    ftb_record r = {.ts = ts, .total = EXTENDED};
    if (left < EXTENDED) {
        r.status = type == TYPE_TIME_EXTEND ? FTB_EXTEND_CUT : FTB_STAMP_CUT;
        return r;
    }
    uint64_t value = delta + ((uint64_t)ftb_load32(p + HEADER, big) << DELTA_BITS);
    if (type == TYPE_TIME_EXTEND) {
        s->time_extends++;
        r.ts += value;
    } else {
        s->time_stamps++;
        r.ts = absolute_stamp(value, ts);
        s->backwards |= r.ts < ts;
    }
    return r;
}

/* Records that are not short data: padding, time extend, time stamp, long data. */
static ftb_record read_special(ftb_stream *s, const uint8_t *p, size_t left, uint64_t ts, uint32_t type, uint32_t delta, int big)
{
    if (type == 0) {
        ftb_record r = sized(p, left, big, FTB_RECORD_CUT);
        r.ts = ts + delta;
        return r;
    }
    if (type == TYPE_PADDING) {
        s->paddings++;
        return sized_padding(p, left, ts, delta, big);
    }
    return extended_time(s, p, left, ts, type, delta, big);
}

FTB_ALWAYS_INLINE ftb_record short_data(const uint8_t *p, size_t left, uint64_t ts, uint32_t words)
{
    ftb_record r = {.ts = ts, .payload = p + HEADER, .len = 4 * words, .total = HEADER + 4 * words};
    r.status = r.total > left ? FTB_RECORD_CUT : FTB_OK;
    return r;
}

/* The header of 2.6.28 to 2.6.30: type 2 bits, len 3 bits, delta 27 bits. */
static ftb_record read_old(ftb_stream *s, const uint8_t *p, size_t left, uint64_t ts, int big)
{
    uint32_t word = ftb_load32(p, big);
    uint32_t type = big ? word >> 30 : word & 3;
    uint32_t len = big ? word >> 27 & 7 : word >> 2 & 7;
    uint32_t delta = big ? word & DELTA_MASK : word >> 5;
    switch (type) {
    case OLD_TYPE_PADDING:
        s->paddings++;
        return (ftb_record){.ts = ts, .ends_page = 1};
    case OLD_TYPE_TIME_EXTEND:
        return extended_time(s, p, left, ts, TYPE_TIME_EXTEND, delta, big);
    case OLD_TYPE_TIME_STAMP: /* defined by the kernel, but never written */
        return (ftb_record){.ts = ts, .status = FTB_BAD_RECORD_TYPE};
    default:
        return len == 0 ? read_special(s, p, left, ts, 0, delta, big) : short_data(p, left, ts + delta, len);
    }
}

/* Bit-fields start at the bottom on little-endian kernels, at the top on big-endian ones. */
FTB_ALWAYS_INLINE uint32_t header_type(uint32_t word, int big)
{
    return big ? word >> DELTA_BITS : word & 31;
}

FTB_ALWAYS_INLINE uint32_t header_delta(uint32_t word, int big)
{
    return big ? word & DELTA_MASK : word >> 5;
}

/* Any record, in any layout: what the fast path of walk() leaves over. */
static __attribute__((noinline)) ftb_record read_record(ftb_stream *s, const uint8_t *p, size_t left, uint64_t ts)
{
    const int big = s->abi->big_endian;
    if (s->abi->old_header)
        return read_old(s, p, left, ts, big);
    uint32_t word = ftb_load32(p, big), type = header_type(word, big);
    if (type - 1 < TYPE_LEN_MAX_SHORT)
        return short_data(p, left, ts + header_delta(word, big), type);
    return read_special(s, p, left, ts, type, header_delta(word, big), big);
}

static uint32_t event_id(const ftb_abi *abi, const uint8_t *payload)
{
    return (uint32_t)ftb_load(payload + abi->type_offset, abi->type_size, abi->big_endian);
}

/* The first data record of a page that follows a gap says when the gap ended. */
static void end_of_gap(ftb_stream *s, uint64_t ts, ftb_report *report)
{
    ftb_loss *row = (ftb_loss *)(void *)(report->losses.data + report->losses.size) - 1;
    row->after = corrected(s->clock, ts);
}

FTB_ALWAYS_INLINE void put(ftb_batch *out, uint32_t n, uint64_t ts, const uint8_t *payload, uint64_t meta)
{
    out->ts[n] = (int64_t)ts;
    out->data[n] = payload;
    out->meta[n] = meta;
}

/* Whether few of a run's records are wanted; short runs tell little. */
static int is_rare(uint32_t wanted, uint64_t events)
{
    return events >= 16 && (uint64_t)wanted * 8 < events;
}

/* Short data records of today's header with a u16 id: as many as follow one another. Stops before any other record, before one
 * that does not fit, and when the batch is full. Unwanted records are overwritten by the next: no branch. */
FTB_ALWAYS_INLINE void walk_varied(ftb_stream *s, const ftb_select *select, ftb_batch *out, int big)
{
    const uint16_t *slot_of = select->slot_of;
    const uint32_t id_at = HEADER + s->abi->type_offset, from = out->n;
    const uint64_t stream = (uint16_t)s->index;
    const uint8_t *p = s->cur, *end = s->end;
    uint64_t ts = s->ts, events = 0;
    uint32_t n = from;

    while (n < FTB_BATCH && (size_t)(end - p) >= EXTENDED) {
        __builtin_prefetch(p + PREFETCH, 0, 1);
        const uint32_t word = ftb_load32(p, big), type = header_type(word, big);
        const uint8_t *next = p + HEADER + 4 * (size_t)type;
        if (type - 1 >= TYPE_LEN_MAX_SHORT || next > end)
            break;
        const uint16_t slot = slot_of[ftb_load16(p + id_at, big)];
        ts += header_delta(word, big);
        put(out, n, ts, p + HEADER, (uint64_t)type << 34 | (uint64_t)slot << 16 | stream); /* as ftb_meta of 4 * type */
        n += slot != FTB_NO_SLOT;
        p = next;
        events++;
    }
    ftb_leave_run(s, p, ts, events);
    out->n = n;
    ftb_note_differences(out, from);
    s->varied = out->differ >> 32 != 0;
    s->rare = is_rare(n - from, events);
}

/* The same where most records are unwanted: a branch that is nearly always right costs less than storing them all. */
static void walk_rare(ftb_stream *s, const ftb_select *select, ftb_batch *out)
{
    const uint16_t *slot_of = select->slot_of;
    const uint32_t id_at = HEADER + s->abi->type_offset, from = out->n;
    const uint8_t *p = s->cur, *end = s->end;
    uint64_t ts = s->ts, events = 0;
    uint32_t n = from;

    while (n < FTB_BATCH && (size_t)(end - p) >= EXTENDED) {
        __builtin_prefetch(p + PREFETCH, 0, 1);
        __builtin_prefetch(p + PREFETCH_NEAR, 0, 3);
        const uint32_t word = ftb_load32(p, 0), type = header_type(word, 0);
        const uint8_t *next = p + HEADER + 4 * (size_t)type;
        if (type - 1 >= TYPE_LEN_MAX_SHORT || next > end)
            break;
        const uint16_t slot = slot_of[ftb_load16(p + id_at, 0)];
        ts += header_delta(word, 0);
        if (FTB_UNLIKELY(slot != FTB_NO_SLOT))
            put(out, n++, ts, p + HEADER, ftb_meta(4 * type, slot, (uint16_t)s->index));
        p = next;
        events++;
    }
    ftb_leave_run(s, p, ts, events);
    out->n = n;
    ftb_note_differences(out, from);
    s->rare = is_rare(n - from, events);
}

/* The same where most records are as long as the one before: that this one is, too, lets the CPU go on before its header is loaded.
 * Where lengths vary, wrong guesses cost more than waiting does. Little-endian. */
static void walk_guessing(ftb_stream *s, const ftb_select *select, ftb_batch *out)
{
    const uint16_t *slot_of = select->slot_of;
    const uint32_t id_at = HEADER + s->abi->type_offset, from = out->n;
    const uint8_t *p = s->cur;
    size_t left = (size_t)(s->end - p), total = EXTENDED; /* the shortest */
    uint64_t ts = s->ts, events = 0, changes = 0;
    uint32_t n = from, usual = UINT32_MAX; /* no type */
    uint64_t meta = 0; /* of a usual record, in slot 0 */

    while (n < FTB_BATCH && left >= total) {
        __builtin_prefetch(p + PREFETCH, 0, 1);
        const uint32_t word = ftb_load32(p, 0), type = header_type(word, 0);
        if (type != usual) {
            if (type - 1 >= TYPE_LEN_MAX_SHORT)
                break;
            changes++;
            usual = type;
            total = HEADER + 4 * (size_t)type;
            meta = ftb_meta(4 * type, 0, (uint16_t)s->index);
            if (total > left)
                break;
        }
        __asm__("" : "+r"(total)); /* keeps the compiler from taking the length out of the header after all */
        const uint16_t slot = slot_of[ftb_load16(p + id_at, 0)];
        ts += header_delta(word, 0);
        put(out, n, ts, p + HEADER, meta | (uint64_t)slot << 16);
        n += slot != FTB_NO_SLOT;
        p += total;
        left -= total;
        events++;
    }
    ftb_leave_run(s, p, ts, events);
    out->n = n;
    ftb_note_differences(out, from);
    s->varied = changes * 8 > events;
    s->rare = is_rare(n - from, events);
}

static void walk_run(ftb_stream *s, const ftb_select *select, ftb_batch *out)
{
    if (s->abi->big_endian)
        walk_varied(s, select, out, 1);
    else if (s->rare)
        walk_rare(s, select, out);
    else if (s->varied)
        walk_varied(s, select, out, 0);
    else
        walk_guessing(s, select, out);
}

int ftb_next_record(ftb_stream *s, ftb_record *r, int *ends_page)
{
    size_t left = (size_t)(s->end - s->cur);
    *ends_page = 1;
    if (left < HEADER)
        return left == 0 ? FTB_OK : FTB_HEADER_CUT;
    *r = read_record(s, s->cur, left, s->ts);
    if (r->status != FTB_OK || r->ends_page)
        return r->status;
    if (r->payload != NULL && r->len < (uint64_t)s->abi->type_offset + s->abi->type_size)
        return FTB_TYPE_MISSING;
    *ends_page = 0;
    s->ts = r->ts;
    s->cur += r->total;
    return FTB_OK;
}

uint16_t ftb_record_slot(const ftb_abi *abi, const ftb_select *select, const uint8_t *payload)
{
    uint32_t id = event_id(abi, payload);
    return id < FTB_N_IDS ? select->slot_of[id] : FTB_NO_SLOT;
}

/* One record of any kind. Returns its status; sets *ends_page when nothing follows. */
static int walk_one(ftb_stream *s, const ftb_select *select, ftb_batch *out, ftb_report *report, int *ends_page)
{
    ftb_record r;
    int status = ftb_next_record(s, &r, ends_page);
    if (*ends_page || r.payload == NULL)
        return status;
    uint16_t slot = ftb_record_slot(s->abi, select, r.payload);
    uint16_t stream = (uint16_t)(s->index | (s->lost_pending ? FTB_LOST_BEFORE : 0));
    put(out, out->n, r.ts, r.payload, ftb_meta((uint32_t)r.len, slot, stream));
    out->n += slot != FTB_NO_SLOT;
    ftb_note_differences(out, out->n - (slot != FTB_NO_SLOT));
    if (s->lost_pending)
        end_of_gap(s, r.ts, report);
    s->lost_pending = 0;
    s->data_ts = r.ts;
    s->events++;
    return FTB_OK;
}

int ftb_step_page(ftb_stream *s, const ftb_select *select, ftb_batch *out, ftb_report *report)
{
    int ends_page, status = walk_one(s, select, out, report, &ends_page);
    if (ends_page)
        return ftb_close_page(s, status, s->cur, report);
    return FTB_OK;
}

int ftb_has_short_headers(const ftb_abi *abi)
{
    return !abi->old_header && abi->type_size == 2 && abi->type_offset <= 2;
}

/* Walk the open page until it ends or the batch is full. */
static int walk_page(ftb_stream *s, const ftb_select *select, ftb_batch *out, ftb_report *report)
{
    const int fast = ftb_has_short_headers(s->abi);
    if (fast && !s->lost_pending)
        ftb_walk_alike(s, select, out);
    while (out->n < FTB_BATCH) {
        if (fast && !s->lost_pending)
            walk_run(s, select, out);
        if (out->n == FTB_BATCH)
            break;
        int status = ftb_step_page(s, select, out, report);
        if (status != FTB_OK || !s->in_page)
            return status;
    }
    return FTB_OK;
}

/* ---- selection on what only needs the ref ---- */

static int pid_wanted(const ftb_select *select, int32_t pid)
{
    uint32_t low = 0, high = select->n_pids;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (select->pids[middle] < pid)
            low = middle + 1;
        else
            high = middle;
    }
    return low < select->n_pids && select->pids[low] == pid;
}

int ftb_record_wanted(const ftb_abi *abi, const ftb_select *select, int64_t ts, const uint8_t *payload, uint32_t len)
{
    if (select->has_window && (ts < select->start || ts >= select->end))
        return 0;
    if (select->pid_width == 0)
        return 1;
    if (len < select->pid_width || len - select->pid_width < select->pid_offset)
        return 0;
    return pid_wanted(select, (int32_t)ftb_load(payload + select->pid_offset, select->pid_width, abi->big_endian));
}

/* A record too short for what its filter reads does not match. */
int ftb_filter_matches(const ftb_select *select, uint16_t slot, uint32_t cpu, int64_t ts, const uint8_t *payload, uint32_t len)
{
    const ftb_program *filter = select->filter_of_slot != NULL ? select->filter_of_slot[slot] : NULL;
    if (filter == NULL)
        return 1;
    ftb_text_context context = {.cpu = (int32_t)cpu, .ts = ts};
    int64_t value;
    return ftb_eval(filter, &context, payload, len, &value) == FTB_OK && value != 0;
}

static int filter_matches(const ftb_stream *s, const ftb_select *select, const ftb_batch *b, uint32_t i)
{
    return ftb_filter_matches(select, ftb_slot(b, i), s->cpu, b->ts[i], b->data[i], ftb_len(b, i));
}

static int all_in_window(const ftb_select *select, const ftb_batch *b, uint32_t from)
{
    int64_t low = INT64_MAX, high = INT64_MIN;
    for (uint32_t i = from; i < b->n; i++) {
        low = b->ts[i] < low ? b->ts[i] : low;
        high = b->ts[i] > high ? b->ts[i] : high;
    }
    return low >= select->start && high < select->end;
}

static void drop_unwanted(const ftb_stream *s, const ftb_select *select, ftb_batch *b, uint32_t from)
{
    uint32_t n = from;
    if (select->pid_width == 0 && select->filter_of_slot == NULL && all_in_window(select, b, from))
        return;
    for (uint32_t i = from; i < b->n; i++) {
        b->ts[n] = b->ts[i];
        b->data[n] = b->data[i];
        b->meta[n] = b->meta[i];
        n += (uint32_t)(ftb_record_wanted(s->abi, select, b->ts[i], b->data[i], ftb_len(b, i)) && filter_matches(s, select, b, i));
    }
    b->n = n;
}

int ftb_walk_page(ftb_stream *s, const ftb_select *select, ftb_batch *out, ftb_report *report)
{
    int status = walk_page(s, select, out, report);
    if (s->events > 0)
        s->last_ts = corrected(s->clock, s->data_ts);
    return status;
}

int ftb_scan(ftb_stream *s, const ftb_select *select, ftb_batch *out, ftb_report *report)
{
    const int correct = !ftb_clock_is_identity(s->clock);
    const int filter = select->has_window || select->pid_width != 0 || select->filter_of_slot != NULL;
    while (out->n < FTB_BATCH) {
        if (!s->in_page) {
            if (s->next_page >= s->size)
                return FTB_NEED_SEGMENT;
            if (ftb_may_count(s)) {
                int status = ftb_count_pages(s, select, report);
                if (status != FTB_OK)
                    return status;
                continue;
            }
            if (ftb_open_page(s, report) != FTB_OK)
                return FTB_NO_MEMORY;
            continue;
        }
        uint32_t from = out->n;
        int status = ftb_walk_page(s, select, out, report);
        if (status != FTB_OK)
            return status;
        if (correct)
            ftb_clock_apply_all(s->clock, out->ts + from, out->n - from);
        if (filter)
            drop_unwanted(s, select, out, from);
    }
    return FTB_OK;
}

/* ---- pages by time ---- */

static int64_t time_at(const ftb_abi *abi, const ftb_clock *clock, const uint8_t *data, size_t index)
{
    return corrected(clock, ftb_load64(data + index * abi->subbuf_size, abi->big_endian));
}

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static int64_t median(int64_t a, int64_t b, int64_t c)
{
    int64_t low = least(a, b), high = a < b ? b : a;
    return c < low ? low : least(c, high);
}

static size_t page_count(const ftb_abi *abi, size_t size)
{
    size_t whole = size / abi->subbuf_size;
    return whole + (size % abi->subbuf_size >= abi->data_offset);
}

int64_t ftb_page_time(const ftb_abi *abi, const ftb_clock *clock, const uint8_t *data, size_t size, size_t index)
{
    size_t pages = page_count(abi, size);
    if (index >= pages)
        return INT64_MAX;
    int64_t own = time_at(abi, clock, data, index);
    if (pages == 1)
        return own;
    /* the ends, too, must not be out of order: what a search looks at last would mislead it most */
    if (index == 0)
        return least(own, time_at(abi, clock, data, 1));
    int64_t before = time_at(abi, clock, data, index - 1);
    if (index + 1 == pages)
        return own < before ? before : own;
    return median(before, own, time_at(abi, clock, data, index + 1));
}

size_t ftb_find_page(const ftb_abi *abi, const ftb_clock *clock, const uint8_t *data, size_t size, int64_t ts)
{
    size_t low = 0, high = page_count(abi, size);
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (ftb_page_time(abi, clock, data, size, middle) <= ts)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}
