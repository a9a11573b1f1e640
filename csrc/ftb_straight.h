/* Records straight to the groups of their plans. */
#ifndef FTB_STRAIGHT_H
#define FTB_STRAIGHT_H

#include "ftb_inline.h"
#include "ftbuf.h"

/* Returns how many refs wait there now. */
FTB_ALWAYS_INLINE uint32_t ftb_group_add(ftb_group *g, int64_t ts, const uint8_t *payload, uint64_t meta)
{
    const uint32_t n = g->n;
    g->ts[n] = ts;
    g->data[n] = payload;
    g->meta[n] = meta;
    return g->n = n + 1;
}

/* Whether a stream's records can go so: unless something is to be left out, or told of the next record. */
int ftb_may_go_straight(const ftb_stream *s);

/* Walk the open page until the group of a plan is full: that plan. FTB_NO_PLAN: the next record is of no plan, or unusual, or there
 * is none. */
uint16_t ftb_walk_straight(ftb_stream *s, const uint16_t *plan_of_slot, ftb_group *const *groups);

/* Records of two sources in the order of a merge, until the group of a plan is full: that plan. FTB_NEW_PLAN: the next one, of
 * `*slot`, waits for its plan. FTB_NO_PLAN: a source that is not done is used up. */
uint16_t ftb_merge_straight(ftb_source *left, ftb_source *right, const ftb_decoder *d, uint16_t *slot);

#endif
