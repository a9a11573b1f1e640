/* Records straight to the groups of their plans, from the pages of one CPU or out of the merge of several: a batch of refs in between
 * would only be copied from. */
#include "ftb_straight.h"

#include "ftb_walk.h"

int ftb_may_go_straight(const ftb_stream *s)
{
    const ftb_select *select = s->select;
    return !s->lost_pending && !s->abi->big_endian && ftb_has_short_headers(s->abi) && ftb_clock_is_identity(s->clock) &&
           !select->has_window && select->pid_width == 0 && select->filter_of_slot == NULL;
}

/* As far as all goes well: whatever is unusual is left to the walk in ftb_page.c. */
uint16_t ftb_walk_straight(ftb_stream *s, const uint16_t *plan_of_slot, ftb_group *const *groups)
{
    const uint16_t *slot_of = s->select->slot_of;
    const uint32_t id_at = HEADER + s->abi->type_offset;
    const uint64_t stream = (uint16_t)s->index;
    const uint8_t *p = s->cur, *end = s->end;
    uint64_t ts = s->ts, events = 0;
    uint16_t full = FTB_NO_PLAN;

    while (full == FTB_NO_PLAN && (size_t)(end - p) >= EXTENDED) {
        __builtin_prefetch(p + PREFETCH, 0, 1);
        __builtin_prefetch(p + PREFETCH_NEAR, 0, 3);
        const uint32_t word = ftb_load32(p, 0), type = word & 31;
        const uint8_t *next = p + HEADER + 4 * (size_t)type;
        if (type - 1 >= TYPE_LEN_MAX_SHORT || next > end)
            break;
        const uint16_t slot = slot_of[ftb_load16(p + id_at, 0)];
        if (FTB_UNLIKELY(slot == FTB_NO_SLOT))
            break;
        const uint16_t plan = plan_of_slot[slot];
        if (FTB_UNLIKELY(plan >= FTB_NEW_PLAN))
            break;
        ftb_group *g = groups[plan];
        ts += word >> 5;
        if (FTB_UNLIKELY(ftb_group_add(g, (int64_t)ts, p + HEADER, (uint64_t)type << 34 | (uint64_t)slot << 16 | stream) == g->most)) /* as ftb_meta */
            full = plan;
        p = next;
        events++;
    }
    ftb_leave_run(s, p, ts, events);
    return full;
}

/* One record of a batch. Returns its plan where that is full or new, else FTB_NO_PLAN. */
FTB_ALWAYS_INLINE uint16_t hand_on(const ftb_batch *b, uint32_t at, const ftb_decoder *d, uint16_t *new_slot)
{
    const uint64_t meta = b->meta[at];
    const uint16_t slot = (uint16_t)(meta >> 16), plan = d->plan_of_slot[slot];
    if (FTB_UNLIKELY(plan >= FTB_NEW_PLAN)) {
        if (plan == FTB_NO_PLAN)
            d->count_of_slot[slot]++;
        *new_slot = slot;
        return plan;
    }
    ftb_group *g = d->groups[plan];
    __builtin_prefetch(b->data[at] + FTB_AHEAD, 0, 1); /* spreads what the next walk will want of memory */
    return ftb_group_add(g, b->ts[at], b->data[at], meta) == g->most ? plan : FTB_NO_PLAN;
}

uint16_t ftb_merge_straight(ftb_source *left, ftb_source *right, const ftb_decoder *d, uint16_t *slot)
{
    const ftb_decoder by = *d; /* a copy: the compiler must take the decoder's own members for changed by every store */
    const ftb_batch *a = left->batch, *b = right->batch;
    uint32_t i = left->pos, j = right->pos;
    uint16_t plan = FTB_NO_PLAN;
    while (plan == FTB_NO_PLAN && (i < a->n || j < b->n)) {
        if (FTB_UNLIKELY(i == a->n ? !left->done : j == b->n && !right->done))
            break;
        const uint32_t is_right = i == a->n || (j < b->n && b->ts[j] < a->ts[i]); /* equal times: the left one */
        plan = hand_on(is_right ? b : a, is_right ? j : i, &by, slot);
        if (plan == FTB_NEW_PLAN)
            break;
        i += !is_right;
        j += is_right;
    }
    left->pos = i;
    right->pos = j;
    return plan;
}
