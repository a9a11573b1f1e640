/* One tight loop per field: record refs -> a column. Space is reserved first, so that the loops cannot fail
 * (strings and lists, whose size is known only on the way, are the exception). */
#include "ftb_inline.h"
#include "ftbuf.h"

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

/* Columns this large will not be read again while they are in cache: stores that go past the cache spare reading each line first. */
#define FTB_STREAM_FROM ((size_t)4 << 20)

/* Copy to memory without bringing its lines into cache. */
static void ftb_stream_out(uint8_t *to, const uint8_t *from, size_t n)
{
#if defined(__SSE2__)
    size_t head = (size_t)(-(uintptr_t)to & 15);
    if (n >= 64 + head) {
        memcpy(to, from, head);
        to += head, from += head, n -= head;
        __m128i *out = (__m128i *)(void *)to;
        const __m128i *in = (const __m128i *)(const void *)from;
        size_t lines = n / 64;
        for (size_t i = 0; i < 4 * lines; i += 4) {
            __m128i a = _mm_loadu_si128(in + i), b = _mm_loadu_si128(in + i + 1);
            __m128i c = _mm_loadu_si128(in + i + 2), d = _mm_loadu_si128(in + i + 3);
            _mm_stream_si128(out + i, a);
            _mm_stream_si128(out + i + 1, b);
            _mm_stream_si128(out + i + 2, c);
            _mm_stream_si128(out + i + 3, d);
        }
        to += 64 * lines, from += 64 * lines, n -= 64 * lines;
    }
#endif
    memcpy(to, from, n);
}

typedef struct {
    ftb_plan *plan;
    const ftb_gather_context *context;
    const ftb_batch *batch;
    const uint16_t *index; /* NULL: identity, from first on */
    uint32_t first;
    uint32_t n;
    uint32_t *pids;        /* the rows' pids, once they were read */
    uint32_t pids_from;    /* their offset in the record, or NO_PIDS */
    uint32_t pids_wanted;  /* the offset that names are looked up by, or NO_PIDS */
} rows;

#define NO_PIDS UINT32_MAX

FTB_ALWAYS_INLINE uint32_t row_at(const rows *r, uint32_t i)
{
    return r->index == NULL ? r->first + i : r->index[i];
}

/* Run `body` for every row with `k` its place in the batch; two loops, so that the identity case is not indirect. */
#define FOR_ROWS(r, k, body)                              \
    do {                                                  \
        const uint32_t n_ = (r)->n, first_ = (r)->first;  \
        if ((r)->index == NULL) {                         \
            _Pragma("GCC unroll 8")                       \
            for (uint32_t i = 0; i < n_; i++) {           \
                const uint32_t k = first_ + i;            \
                body                                      \
            }                                             \
        } else {                                          \
            const uint16_t *index_ = (r)->index;          \
            for (uint32_t i = 0; i < n_; i++) {           \
                const uint32_t k = index_[i];             \
                body                                      \
            }                                             \
        }                                                 \
    } while (0)

static const ftb_stream *stream_of(const rows *r, uint32_t k)
{
    return &r->context->streams[ftb_stream_index(r->batch, k)];
}

/* ---- header columns ---- */

static void gather_ts(const rows *r, int64_t *out)
{
    const int64_t *ts = r->batch->ts;
    FOR_ROWS(r, k, { out[i] = ts[k]; });
}

/* The stream that all rows come from, or NULL: with few CPUs running, and with one always, a constant is all it takes. */
static const ftb_stream *common_stream(const rows *r)
{
    const uint64_t *meta = r->batch->meta;
    uint64_t first = meta[row_at(r, 0)], differ = 0;
    FOR_ROWS(r, k, { differ |= meta[k] ^ first; });
    return (uint16_t)differ & ~FTB_LOST_BEFORE ? NULL : stream_of(r, row_at(r, 0));
}

static void fill(uint16_t *out, uint32_t n, uint16_t value)
{
    for (uint32_t i = 0; i < n; i++)
        out[i] = value;
}

static void gather_cpu(const rows *r, uint16_t *out)
{
    const ftb_stream *only = common_stream(r);
    if (only != NULL)
        fill(out, r->n, (uint16_t)only->cpu);
    else
        FOR_ROWS(r, k, { out[i] = (uint16_t)stream_of(r, k)->cpu; });
}

static void gather_buffer(const rows *r, uint16_t *out)
{
    const ftb_stream *only = common_stream(r);
    if (only != NULL)
        fill(out, r->n, (uint16_t)only->buffer);
    else
        FOR_ROWS(r, k, { out[i] = (uint16_t)stream_of(r, k)->buffer; });
}

static void gather_slot(const rows *r, uint16_t *out)
{
    FOR_ROWS(r, k, { out[i] = ftb_slot(r->batch, k); });
}

/* The pid itself, marked by its sign, of a task whose name is not in the table; what is no pid has the code of no name. */
FTB_ALWAYS_INLINE int32_t unnamed(uint32_t pid)
{
    return pid <= INT32_MAX ? (int32_t)((int64_t)pid + INT32_MIN) : 0;
}

#define PID_WIDTH 4

/* The rows' pids, read once for the pid column and for the names. */
static const uint32_t *pids_at(rows *r, uint32_t offset)
{
    if (r->pids_from != offset) {
        const uint8_t *const *data = r->batch->data;
        uint32_t *out = r->pids;
        if (r->plan->big_endian)
            FOR_ROWS(r, k, { out[i] = ftb_load32(data[k] + offset, 1); });
        else
            FOR_ROWS(r, k, { out[i] = ftb_load32(data[k] + offset, 0); });
        r->pids_from = offset;
    }
    return r->pids;
}

static int32_t comm_code(const ftb_comms *comms, uint32_t pid)
{
    int32_t code = pid < comms->n_pids ? comms->code_of_pid[pid] : -1;
    return code >= 0 ? code : unnamed(pid);
}

#define PIDS_AT_ONCE 32

/* A task's events come in runs: a block with one pid is filled, not looked up. */
static void comm_block(const ftb_comms *comms, const uint32_t *pids, int32_t *out, uint32_t n)
{
    uint32_t differ = 0;
    for (uint32_t i = 0; i < n; i++)
        differ |= pids[i] ^ pids[0];
    if (differ == 0) {
        int32_t code = comm_code(comms, pids[0]);
        for (uint32_t i = 0; i < n; i++)
            out[i] = code;
    } else {
        for (uint32_t i = 0; i < n; i++)
            out[i] = comm_code(comms, pids[i]);
    }
}

static void gather_comm(rows *r, const ftb_op *op, int32_t *out)
{
    const ftb_comms *comms = r->plan->comms;
    if (op->width != PID_WIDTH) {
        FOR_ROWS(r, k, {
            out[i] = comm_code(comms, (uint32_t)ftb_load(r->batch->data[k] + op->offset, op->width, r->plan->big_endian));
        });
        return;
    }
    const uint32_t *pids = pids_at(r, op->offset);
    uint32_t i = 0;
    for (; i + PIDS_AT_ONCE <= r->n; i += PIDS_AT_ONCE)
        comm_block(comms, pids + i, out + i, PIDS_AT_ONCE);
    if (i < r->n)
        comm_block(comms, pids + i, out + i, r->n - i);
}

/* ---- scalars: one loop per width in, width out, sign and byte order ---- */

#define SCALAR_LOOP(in_type, out_type, load)                                     \
    do {                                                                         \
        out_type *out = (out_type *)(void *)to;                                  \
        FOR_ROWS(r, k, { out[i] = (out_type)(in_type)(load); });                 \
        return;                                                                  \
    } while (0)

#define SCALAR_CASES(big)                                                                                    \
    switch (op->width << 8 | op->out_width << 1 | sign) {                                                    \
    case 1 << 8 | 1 << 1: SCALAR_LOOP(uint8_t, uint8_t, data[k][offset]);                                    \
    case 2 << 8 | 2 << 1: SCALAR_LOOP(uint16_t, uint16_t, ftb_load16(data[k] + offset, big));                \
    case 4 << 8 | 4 << 1: SCALAR_LOOP(uint32_t, uint32_t, ftb_load32(data[k] + offset, big));                \
    case 8 << 8 | 8 << 1: SCALAR_LOOP(uint64_t, uint64_t, ftb_load64(data[k] + offset, big));                \
    case 4 << 8 | 8 << 1: SCALAR_LOOP(uint32_t, uint64_t, ftb_load32(data[k] + offset, big));                \
    default: break;                                                                                          \
    }

uint64_t ftb_read_scalar(const ftb_op *op, int big_endian, const uint8_t *data)
{
    const int shift = 64 - 8 * op->width;
    uint64_t v = ftb_load(data + op->offset, op->width, big_endian);
    return op->is_signed ? (uint64_t)((int64_t)(v << shift) >> shift) : v;
}

static void gather_scalar_odd(const rows *r, const ftb_op *op, uint8_t *to)
{
    FOR_ROWS(r, k, {
        uint64_t v = ftb_read_scalar(op, r->plan->big_endian, r->batch->data[k]);
        const uint8_t *low = (const uint8_t *)&v + (FTB_HOST_BIG ? 8 - op->out_width : 0);
        memcpy(to + (size_t)i * op->out_width, low, op->out_width);
    });
}

static void gather_scalar(const rows *r, const ftb_op *op, uint8_t *to)
{
    const uint8_t *const *data = r->batch->data;
    const uint32_t offset = op->offset;
    const int sign = op->is_signed && op->out_width != op->width;
    if (r->plan->big_endian == FTB_HOST_BIG) {
        SCALAR_CASES(FTB_HOST_BIG)
    } else {
        SCALAR_CASES(!FTB_HOST_BIG)
    }
    gather_scalar_odd(r, op, to);
}

/* ---- arrays, strings, lists ---- */

static void copy_elements(uint8_t *to, const uint8_t *from, size_t bytes, uint32_t width, int swap)
{
    if (!swap || width == 1) {
        memcpy(to, from, bytes);
        return;
    }
    for (size_t at = 0; at < bytes; at += width)
        for (uint32_t b = 0; b < width; b++)
            to[at + b] = from[at + width - 1 - b];
}

static void gather_fixed(const rows *r, const ftb_op *op, uint8_t *to)
{
    const int swap = r->plan->big_endian != FTB_HOST_BIG;
    FOR_ROWS(r, k, {
        copy_elements(to + (size_t)i * op->size, r->batch->data[k] + op->offset, op->size, op->width, swap);
    });
}

static ftb_span locate(const rows *r, const ftb_op *op, uint32_t k)
{
    int outside = 0;
    ftb_span span = ftb_locate(op, r->plan->big_endian, r->batch->data[k], ftb_len(r->batch, k), &outside);
    r->plan->outside += (uint64_t)outside;
    return span;
}

#define COMM_LEN 16 /* K:include/linux/sched.h TASK_COMM_LEN */

static int gather_comms(const rows *r, const ftb_op *op, int32_t *out)
{
    int64_t least = 0;
    FOR_ROWS(r, k, {
        int64_t code = ftb_intern_comm(op->intern, r->batch->data[k] + op->offset);
        least |= code;
        out[i] = (int32_t)code;
    });
    return least < 0 ? FTB_NO_MEMORY : FTB_OK;
}

static int gather_strings(const rows *r, const ftb_op *op, int32_t *out)
{
    if (op->where == FTB_INLINE && op->size == COMM_LEN)
        return gather_comms(r, op, out);
    for (uint32_t i = 0; i < r->n; i++) {
        ftb_span span = locate(r, op, row_at(r, i));
        const uint8_t *nul = span.len > 0 ? memchr(span.data, 0, span.len) : NULL;
        int64_t code = ftb_intern_code(op->intern, span.data, nul != NULL ? (size_t)(nul - span.data) : span.len);
        if (code < 0)
            return FTB_NO_MEMORY;
        out[i] = (int32_t)code;
    }
    return FTB_OK;
}

/* Offsets count elements and stand one per row: where the row's elements end. */
static int gather_lists(const rows *r, ftb_op *op, uint64_t *out)
{
    const int swap = r->plan->big_endian != FTB_HOST_BIG;
    for (uint32_t i = 0; i < r->n; i++) {
        ftb_span span = locate(r, op, row_at(r, i));
        size_t bytes = span.len - span.len % op->width;
        if (ftb_column_reserve(&op->values, bytes) != FTB_OK)
            return FTB_NO_MEMORY;
        if (bytes > 0)
            copy_elements(op->values.data + op->values.size, span.data, bytes, op->width, swap);
        op->values.size += bytes;
        out[i] = op->values.size / op->width;
    }
    return FTB_OK;
}

static size_t out_bytes(const ftb_op *op)
{
    switch (op->op) {
    case FTB_OP_TS:
    case FTB_OP_LIST: return 8;
    case FTB_OP_CPU:
    case FTB_OP_BUFFER:
    case FTB_OP_SLOT: return 2;
    case FTB_OP_SCALAR: return op->out_width;
    case FTB_OP_FIXED: return op->size;
    default: return 4;
    }
}

/* Final size of a column, guessed from how far its streams have been read; 0 while it is too early to tell. */
static size_t expected_bytes(const rows *r, const ftb_op *op, size_t coming)
{
    double consumed = 0, total = (double)r->context->total_bytes;
    for (uint32_t i = 0; i < r->context->n_streams; i++)
        consumed += (double)r->context->streams[i].consumed + (double)r->context->streams[i].next_page;
    if (consumed * 64 < total || consumed > total)
        return 0;
    double expected = ((double)op->column.size + (double)coming) * (total / consumed) * 1.05 + FTB_BATCH * (double)out_bytes(op);
    return expected < (double)SIZE_MAX / 4 ? (size_t)expected : 0;
}

/* Ops whose output is at most 8 bytes a row are gathered into a buffer in L1 and copied out from there. */
static int is_small(const ftb_op *op)
{
    return op->op <= FTB_OP_SCALAR;
}

static void gather_small(rows *r, const ftb_op *op, void *to)
{
    switch (op->op) {
    case FTB_OP_TS: gather_ts(r, to); break;
    case FTB_OP_CPU: gather_cpu(r, to); break;
    case FTB_OP_BUFFER: gather_buffer(r, to); break;
    case FTB_OP_SLOT: gather_slot(r, to); break;
    case FTB_OP_COMM: gather_comm(r, op, to); break;
    default: gather_scalar(r, op, to); break;
    }
}

static int gather_large(const rows *r, ftb_op *op, void *to)
{
    switch (op->op) {
    case FTB_OP_FIXED: gather_fixed(r, op, to); return FTB_OK;
    case FTB_OP_STRING: return gather_strings(r, op, to);
    case FTB_OP_LIST: return gather_lists(r, op, to);
    default: return FTB_BAD_PLAN;
    }
}

/* What is already in cache in the order of the rows, or NULL: it need not be gathered. */
static const void *at_hand(rows *r, const ftb_op *op)
{
    if (op->op == FTB_OP_TS && r->index == NULL)
        return r->batch->ts + r->first;
    if (op->op == FTB_OP_SCALAR && op->width == PID_WIDTH && op->out_width == PID_WIDTH && op->offset == r->pids_wanted)
        return pids_at(r, op->offset);
    return NULL;
}

static void copy_out(const ftb_op *op, uint8_t *to, const void *from, size_t bytes)
{
    if (op->column.capacity >= FTB_STREAM_FROM)
        ftb_stream_out(to, from, bytes);
    else
        memcpy(to, from, bytes);
}

static int gather_op(rows *r, ftb_op *op)
{
    size_t bytes;
    if (ftb_mul_overflows(out_bytes(op), r->n, &bytes))
        return FTB_NO_MEMORY;
    if (bytes > op->column.capacity - op->column.size &&
        ftb_column_reserve_for(&op->column, bytes, expected_bytes(r, op, bytes)) != FTB_OK)
        return FTB_NO_MEMORY;
    uint8_t *to = op->column.data + op->column.size;
    const void *near = at_hand(r, op);
    if (near != NULL) {
        copy_out(op, to, near, bytes);
    } else if (is_small(op) && op->column.capacity >= FTB_STREAM_FROM) {
        _Alignas(64) uint8_t gathered[FTB_BATCH * 8];
        gather_small(r, op, gathered);
        ftb_stream_out(to, gathered, bytes);
    } else if (is_small(op)) {
        gather_small(r, op, to);
    } else {
        int status = gather_large(r, op, to);
        if (status != FTB_OK)
            return status;
    }
    op->column.size += bytes;
    return FTB_OK;
}

/* Offset of the pids that names are looked up by, or NO_PIDS. */
static uint32_t pids_wanted(const ftb_plan *plan)
{
    for (uint32_t i = 0; i < plan->n_ops; i++)
        if (plan->ops[i].op == FTB_OP_COMM && plan->ops[i].width == PID_WIDTH)
            return plan->ops[i].offset;
    return NO_PIDS;
}

static int gather_rows(rows *r)
{
    uint32_t pids[FTB_BATCH];
    r->pids = pids;
    r->pids_from = NO_PIDS;
    for (uint32_t i = 0; i < r->plan->n_ops; i++) {
        int status = gather_op(r, &r->plan->ops[i]);
        if (status != FTB_OK)
            return status;
    }
    r->plan->rows += r->n;
    return FTB_OK;
}

/* Rows at once where they need no index: their payloads and what is gathered of them stay in the first cache, op after op. */
#define BLOCK 256

int ftb_gather(ftb_plan *plan, const ftb_gather_context *context, const ftb_batch *batch, const uint16_t *index, uint32_t n)
{
    rows r = {.plan = plan, .context = context, .batch = batch, .index = index, .n = n, .pids_wanted = pids_wanted(plan)};
    if (index != NULL)
        return gather_rows(&r);
    int status = FTB_OK;
    for (; r.first < n && status == FTB_OK; r.first += BLOCK) {
        r.n = n - r.first < BLOCK ? n - r.first : BLOCK;
        status = gather_rows(&r);
    }
    return status;
}
