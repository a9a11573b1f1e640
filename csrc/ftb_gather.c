/* Gathering, by the loops that suit the CPU. */
#include "ftb_gather.h"
#include "ftb_gather_loops.h"

uint64_t ftb_read_scalar(const ftb_op *op, int big_endian, const uint8_t *data)
{
    const int shift = 64 - 8 * op->width;
    uint64_t v = ftb_load(data + op->offset, op->width, big_endian);
    return op->is_signed ? (uint64_t)((int64_t)(v << shift) >> shift) : v;
}

int ftb_gather(ftb_plan *plan, const ftb_gather_context *context, const ftb_refs *refs)
{
#if FTB_HAS_WIDE
    if (ftb_is_wide())
        return ftb_gather_wide(plan, context, refs);
#endif
    return gather_all(plan, context, refs);
}
