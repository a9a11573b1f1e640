/* Counting of records. */
#include "ftb_census.h"

#include "ftb_inline.h"

#define LONGEST_SHORT (28u * 4u) /* K:ring_buffer.c RB_MAX_SMALL_DATA: longer records have their length in a word of its own */

void ftb_tally_clear(ftb_tally *tally, size_t n)
{
    for (size_t i = 0; i < n; i++)
        tally[i] = (ftb_tally){0, 0, INT64_MAX, INT64_MIN};
}

static void count(ftb_tally *t, uint32_t bytes, int64_t ts)
{
    t->records++;
    t->bytes += bytes;
    t->first = ts < t->first ? ts : t->first;
    t->last = ts > t->last ? ts : t->last;
}

/* Times in a row lie in one bin, mostly. */
static uint32_t bin_of(ftb_census *c, int64_t ts)
{
    if (FTB_LIKELY(ts >= c->low && ts < c->high))
        return c->bin;
    uint64_t from_start = ts < c->start ? 0 : (uint64_t)ts - (uint64_t)c->start, bin = from_start / c->width;
    if (bin >= c->n_bins)
        return c->n_bins - 1;
    uint64_t low = bin * c->width, room = (uint64_t)INT64_MAX - (uint64_t)c->start - low;
    c->low = (int64_t)((uint64_t)c->start + low);
    c->high = c->width > room ? INT64_MAX : c->low + (int64_t)c->width;
    c->bin = (uint32_t)bin;
    return c->bin;
}

void ftb_census_add(ftb_census *c, const ftb_batch *b)
{
    for (uint32_t k = 0; k < b->n; k++) {
        uint32_t len = ftb_len(b, k), slot = ftb_slot(b, k), stream = ftb_stream_index(b, k);
        uint32_t bytes = len + (len == 0 || len > LONGEST_SHORT ? 8 : 4);
        count(&c->slots[slot], bytes, b->ts[k]);
        count(&c->streams[stream], bytes, b->ts[k]);
        if (c->bins != NULL)
            c->bins[(size_t)(c->by_slot ? slot : stream) * c->n_bins + bin_of(c, b->ts[k])]++;
    }
}
