/* The loops of gathering, compiled for CPUs with vectors of 64 bytes as well, where the compiler can. */
#ifndef FTB_GATHER_H
#define FTB_GATHER_H

#include "ftb_inline.h"
#include "ftbuf.h"

#if FTB_HAS_WIDE
int ftb_gather_wide(ftb_plan *plan, const ftb_gather_context *context, const ftb_refs *refs);
#endif

#endif
