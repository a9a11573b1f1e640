/* Plans are checked once, so that the gather loops need one length compare per record. */
#include "ftb_inline.h"
#include "ftbuf.h"

static int is_width(uint32_t n)
{
    return n == 1 || n == 2 || n == 4 || n == 8;
}

/* Bytes of the record's fixed part that an op reads without looking at the record's length. */
static uint32_t fixed_bytes(const ftb_op *op)
{
    if (op->op == FTB_OP_COMM || op->op == FTB_OP_SCALAR)
        return op->width;
    if (op->op < FTB_OP_COMM)
        return 0;
    switch (op->where) {
    case FTB_INLINE: return op->size;
    case FTB_SHORT_LOC: return 2;
    case FTB_TAIL: return 0; /* its count is checked apart */
    default: return 4;
    }
}

/* Whether the field with a tail's number of elements is in the fixed part. */
static int is_count_inside(const ftb_op *op, uint32_t min_len)
{
    if (op->op < FTB_OP_STRING || op->where != FTB_TAIL || op->size == 0)
        return 1;
    return is_width(ftb_count_width(op)) && ftb_count_at(op) <= min_len && ftb_count_width(op) <= min_len - ftb_count_at(op);
}

static int is_op_sound(const ftb_op *op)
{
    if (op->op >= FTB_N_OPS || op->where >= FTB_N_WHERE)
        return 0;
    if (op->op < FTB_OP_COMM)
        return 1;
    if (!is_width(op->width))
        return 0;
    switch (op->op) {
    case FTB_OP_SCALAR: return op->out_width == op->width || (op->width == 4 && op->out_width == 8);
    case FTB_OP_FIXED: return op->where == FTB_INLINE && op->size > 0 && op->size % op->width == 0;
    case FTB_OP_STRING: return op->intern != NULL;
    default: return 1;
    }
}

/* A word for a value narrower than one: at a multiple of 8, so that neighbours share it, or wherever it fits. It may begin up
 * to 4 bytes before the payload, where every record has its header (K:ring_buffer.c), but never ends behind the fixed part. */
static void choose_word(ftb_op *op, uint32_t min_len, int big_endian)
{
    const int64_t offset = op->offset, width = op->width, last = min_len >= 4 ? (int64_t)min_len - 8 : -4;
    int64_t word = offset & ~(int64_t)7;
    if (offset + width > word + 8)
        word = offset;
    if (word > last)
        word = last;
    op->word = (int32_t)word;
    op->shift = (uint8_t)(8 * (big_endian ? 8 - width - (offset - word) : offset - word));
}

static int is_narrow(const ftb_op *op)
{
    return op->op == FTB_OP_COMM || (op->op == FTB_OP_SCALAR && op->width < 8);
}

int ftb_plan_check(ftb_plan *plan)
{
    for (uint32_t i = 0; i < plan->n_ops; i++) {
        ftb_op *op = &plan->ops[i];
        uint32_t end;
        if (!is_op_sound(op) || __builtin_add_overflow(op->offset, fixed_bytes(op), &end))
            return FTB_BAD_PLAN;
        if (op->op == FTB_OP_COMM && plan->comms == NULL)
            return FTB_BAD_PLAN;
        if (fixed_bytes(op) > 0 && end > plan->min_len)
            return FTB_BAD_PLAN;
        if (!is_count_inside(op, plan->min_len))
            return FTB_BAD_PLAN;
        if (is_narrow(op))
            choose_word(op, plan->min_len, plan->big_endian);
    }
    return FTB_OK;
}

void ftb_plan_free(ftb_plan *plan)
{
    for (uint32_t i = 0; i < plan->n_ops; i++) {
        ftb_column_free(&plan->ops[i].column);
        ftb_column_free(&plan->ops[i].values);
    }
}

/* Bytes of a tail's elements: as many as the record says, and not those behind the mark that old kernels end a stack
 * with, a long of all ones (K:trace_output.c trace_stack_print). */
static uint64_t counted_bytes(const ftb_op *op, int big_endian, const uint8_t *data, uint64_t start, uint64_t size)
{
    uint64_t count = ftb_load(data + ftb_count_at(op), ftb_count_width(op), big_endian);
    if (count < size / op->width)
        size = count * op->width;
    for (uint64_t at = 0; op->width >= 4 && at + op->width <= size; at += op->width)
        if (ftb_load(data + start + at, op->width, big_endian) == UINT64_MAX >> (64 - 8 * op->width))
            return at;
    return size;
}

ftb_span ftb_locate(const ftb_op *op, int big_endian, const uint8_t *data, uint32_t len, int *outside)
{
    uint64_t start = op->offset, size = op->size;
    if (op->where == FTB_TAIL) {
        size = start <= len ? len - start : 0;
        if (op->size != 0 && size > 0)
            size = counted_bytes(op, big_endian, data, start, size);
    } else if (op->where == FTB_SHORT_LOC) { /* an offset only: the string runs to its NUL */
        start = ftb_load16(data + op->offset, big_endian);
        size = start <= len ? len - start : 0;
    } else if (op->where != FTB_INLINE) {
        /* K:include/trace/stages: low half offset, high half length; relative ones count from the end of this word */
        uint32_t word = ftb_load32(data + op->offset, big_endian);
        start = (word & 0xffff) + (op->where == FTB_REL_LOC ? (uint64_t)op->offset + 4 : 0);
        size = word >> 16;
    }
    ftb_span span = {data, 0};
    if (start > len || size > len - start) {
        *outside = 1;
        return span;
    }
    span.data = data + start;
    span.len = (uint32_t)size;
    return span;
}
