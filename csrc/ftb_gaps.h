/* Where records were lost, as seen by one who goes through a recording in order of time. */
#ifndef FTB_GAPS_H
#define FTB_GAPS_H

#include "ftbuf.h"

typedef struct {
    int64_t before, after; /* times of the records around it */
    uint32_t cpu;          /* below 1 << 16 */
} ftb_gap;

typedef struct {
    ftb_column waiting; /* of ftb_gap, by `before`: those that are known */
    size_t at;          /* of these, the first that has not begun */
    uint8_t any;        /* some have begun */
    int64_t last;       /* where the last of those ends */
    ftb_column of_cpu;  /* int64 by CPU: the same of its own gaps; INT64_MIN: it had none */
} ftb_gaps;

/* Gaps that have become known, in any order, before rows behind their begin go by. */
int ftb_gaps_add(ftb_gaps *gaps, const int64_t *before, const int64_t *after, const uint16_t *cpu, size_t n);
/* It is `ts` now: gaps that began earlier count. */
int ftb_gaps_pass(ftb_gaps *gaps, int64_t ts);
/* Whether part of a gap, of any CPU or of one, lies between a time and now. */
int ftb_gaps_any_since(const ftb_gaps *gaps, int64_t ts);
int ftb_gaps_since(const ftb_gaps *gaps, uint32_t cpu, int64_t ts);
void ftb_gaps_free(ftb_gaps *gaps);

#endif
