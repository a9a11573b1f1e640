/* Where records were lost, as seen by one who goes through a recording in order of time. */
#ifndef FTB_GAPS_H
#define FTB_GAPS_H

#include "ftbuf.h"

typedef struct {
    /* set by the caller: the gaps of all CPUs, by `before` */
    const int64_t *before, *after; /* times of the records around each */
    const uint16_t *cpu;
    size_t n;
    /* state */
    size_t at;         /* those before it have begun */
    int64_t last;      /* where the last of them ends */
    ftb_column of_cpu; /* int64 by CPU: the same of its own gaps; INT64_MIN: it had none */
} ftb_gaps;

/* It is `ts` now: gaps that began earlier count. */
int ftb_gaps_pass(ftb_gaps *gaps, int64_t ts);
/* Whether part of a gap, of any CPU or of one, lies between a time and now. */
int ftb_gaps_any_since(const ftb_gaps *gaps, int64_t ts);
int ftb_gaps_since(const ftb_gaps *gaps, uint32_t cpu, int64_t ts);
void ftb_gaps_free(ftb_gaps *gaps);

#endif
