/* The loops of gathering for CPUs with AVX-512: what makes columns of narrow fields needs half the instructions there. */
#include "ftb_gather.h"

#if FTB_HAS_WIDE

#include <emmintrin.h> /* not for such CPUs alone */

/* Whatever is defined from here on is compiled for such CPUs; only ftb_gather calls it, once it has asked. */
#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,bmi2"))), apply_to = function)
#else
#pragma GCC target("avx512f,avx512bw,avx512dq,avx512vl,bmi2")
#endif

#include "ftb_gather_loops.h"

int ftb_gather_wide(ftb_plan *plan, const ftb_gather_context *context, const ftb_refs *refs)
{
    return gather_all(plan, context, refs);
}

#if defined(__clang__)
#pragma clang attribute pop
#endif

#endif
