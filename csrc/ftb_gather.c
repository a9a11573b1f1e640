/* One tight loop per field: record refs -> a column. Space is reserved first, so that the loops cannot fail
 * (strings and lists, whose size is known only on the way, are the exception). */
#include "ftb_inline.h"
#include "ftbuf.h"

typedef struct {
    ftb_plan *plan;
    const ftb_gather_context *context;
    const ftb_batch *batch;
    const uint16_t *index; /* NULL: identity */
    uint32_t n;
} rows;

FTB_ALWAYS_INLINE uint32_t row_at(const rows *r, uint32_t i)
{
    return r->index == NULL ? i : r->index[i];
}

/* Run `body` for every row with `k` its place in the batch; two loops, so that the identity case is not indirect. */
#define FOR_ROWS(r, k, body)                              \
    do {                                                  \
        if ((r)->index == NULL) {                         \
            for (uint32_t i = 0; i < (r)->n; i++) {       \
                const uint32_t k = i;                     \
                body                                      \
            }                                             \
        } else {                                          \
            const uint16_t *index_ = (r)->index;          \
            for (uint32_t i = 0; i < (r)->n; i++) {       \
                const uint32_t k = index_[i];             \
                body                                      \
            }                                             \
        }                                                 \
    } while (0)

static const ftb_stream *stream_of(const rows *r, uint32_t k)
{
    return &r->context->streams[r->batch->stream[k] & ~FTB_LOST_BEFORE];
}

/* ---- header columns ---- */

static void gather_ts(const rows *r, int64_t *out)
{
    const int64_t *ts = r->batch->ts;
    if (r->index == NULL)
        memcpy(out, ts, r->n * sizeof *out);
    else
        FOR_ROWS(r, k, { out[i] = ts[k]; });
}

static void gather_cpu(const rows *r, uint16_t *out)
{
    FOR_ROWS(r, k, { out[i] = (uint16_t)stream_of(r, k)->cpu; });
}

static void gather_buffer(const rows *r, uint16_t *out)
{
    FOR_ROWS(r, k, { out[i] = (uint16_t)stream_of(r, k)->buffer; });
}

static void gather_slot(const rows *r, uint16_t *out)
{
    const uint16_t *slot = r->batch->slot;
    FOR_ROWS(r, k, { out[i] = slot[k]; });
}

static void gather_comm(const rows *r, const ftb_op *op, int32_t *out)
{
    const ftb_comms *comms = r->context->comms;
    const uint8_t *const *data = r->batch->data;
    const uint32_t offset = op->offset;
    const int big = r->plan->big_endian;
    FOR_ROWS(r, k, {
        uint32_t pid = (uint32_t)ftb_load(data[k] + offset, op->width, big);
        out[i] = pid < comms->n_pids ? comms->code_of_pid[pid] : 0;
    });
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
    ftb_span span = ftb_locate(op, r->plan->big_endian, r->batch->data[k], r->batch->len[k], &outside);
    r->plan->outside += (uint64_t)outside;
    return span;
}

static int gather_strings(const rows *r, const ftb_op *op, int32_t *out)
{
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

static int gather_op(const rows *r, ftb_op *op)
{
    size_t bytes;
    if (ftb_mul_overflows(out_bytes(op), r->n, &bytes) || ftb_column_reserve(&op->column, bytes) != FTB_OK)
        return FTB_NO_MEMORY;
    void *to = op->column.data + op->column.size;
    int status = FTB_OK;
    switch (op->op) {
    case FTB_OP_TS: gather_ts(r, to); break;
    case FTB_OP_CPU: gather_cpu(r, to); break;
    case FTB_OP_BUFFER: gather_buffer(r, to); break;
    case FTB_OP_SLOT: gather_slot(r, to); break;
    case FTB_OP_COMM: gather_comm(r, op, to); break;
    case FTB_OP_SCALAR: gather_scalar(r, op, to); break;
    case FTB_OP_FIXED: gather_fixed(r, op, to); break;
    case FTB_OP_STRING: status = gather_strings(r, op, to); break;
    case FTB_OP_LIST: status = gather_lists(r, op, to); break;
    default: return FTB_BAD_PLAN;
    }
    if (status == FTB_OK)
        op->column.size += bytes;
    return status;
}

int ftb_gather(ftb_plan *plan, const ftb_gather_context *context, const ftb_batch *batch, const uint16_t *index, uint32_t n)
{
    rows r = {plan, context, batch, index, n};
    for (uint32_t i = 0; i < plan->n_ops; i++) {
        int status = gather_op(&r, &plan->ops[i]);
        if (status != FTB_OK)
            return status;
    }
    plan->rows += n;
    return FTB_OK;
}
