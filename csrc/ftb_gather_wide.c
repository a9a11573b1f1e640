/* The loops of gathering for CPUs with AVX-512: what makes columns of narrow fields needs half the instructions there. */
#include "ftb_gather.h"

#if FTB_HAS_WIDE

#include "ftb_wide.h"

FTB_WIDE_BEGIN

#include "ftb_gather_loops.h"

/* Only ftb_gather calls it, once it has asked for such a CPU. */
int ftb_gather_wide(ftb_plan *plan, const ftb_gather_context *context, const ftb_refs *refs)
{
    return gather_all(plan, context, refs);
}

FTB_WIDE_END

#endif
