/* Samples of groups added up: sums, extremes, and a histogram of buckets less than 1 % wide. */
#ifndef FTB_SAMPLES_H
#define FTB_SAMPLES_H

#include "ftb_pairs.h"
#include "ftbuf.h"

/* A histogram has 1 << FTB_SAMPLE_FINENESS buckets between a power of two and the next; FTB_SAMPLE_BUCKETS is above all. */
#define FTB_SAMPLE_FINENESS 7
#define FTB_SAMPLE_BUCKETS (64 << FTB_SAMPLE_FINENESS)

typedef struct {
    int64_t count, total, min, max, last;
} ftb_sample_sums;

typedef struct {
    int64_t cell; /* group * FTB_SAMPLE_BUCKETS + bucket */
    int64_t count;
} ftb_sample_cell;

typedef struct {
    ftb_column sums;  /* of ftb_sample_sums, by group */
    ftb_column cells; /* of ftb_sample_cell, each once, in the order in which they were met */
    ftb_pairs numbers; /* of cells */
} ftb_samples;

/* Samples of groups, which are numbered from 0; a negative group is none. A negative value counts as 0. */
int ftb_samples_add(ftb_samples *s, const int32_t *groups, const int64_t *values, size_t n);
void ftb_samples_free(ftb_samples *s);

#endif
