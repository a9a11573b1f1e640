/* Records counted where they are found: how many, how large and when, by kind of event, by stream and over time. */
#ifndef FTB_CENSUS_H
#define FTB_CENSUS_H

#include "ftbuf.h"

typedef struct {
    uint64_t records;
    uint64_t bytes; /* in the ring buffer, with their headers */
    int64_t first, last; /* the least and the greatest time; without records INT64_MAX and INT64_MIN */
} ftb_tally;

typedef struct {
    /* set by the caller */
    ftb_tally *slots, *streams; /* one per slot, one per stream */
    uint64_t *bins;             /* n_bins for each slot or each stream; NULL: time does not matter */
    uint32_t n_bins;
    uint8_t by_slot;
    int64_t start;  /* of the first bin; earlier records count there, later ones than all bins in the last */
    uint64_t width; /* of a bin, not 0 */
    /* state: the bin that was last met, low <= ts < high */
    int64_t low, high;
    uint32_t bin;
} ftb_census;

void ftb_tally_clear(ftb_tally *tally, size_t n);
void ftb_census_add(ftb_census *census, const ftb_batch *batch);

#endif
