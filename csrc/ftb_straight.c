/* Records of one CPU straight to the groups of their plans: where nothing is to be merged and nothing left out, a batch of refs in
 * between would only be copied from. As far as all goes well: whatever is unusual is left to the walk in ftb_page.c. */
#include "ftb_straight.h"

#include "ftb_inline.h"
#include "ftb_walk.h"

int ftb_may_go_straight(const ftb_stream *s)
{
    const ftb_select *select = s->select;
    return !s->lost_pending && !s->abi->big_endian && ftb_has_short_headers(s->abi) && ftb_clock_is_identity(s->clock) &&
           !select->has_window && select->pid_width == 0 && select->filter_of_slot == NULL;
}

FTB_ALWAYS_INLINE uint32_t add(ftb_group *g, uint64_t ts, const uint8_t *payload, uint64_t meta)
{
    const uint32_t n = g->n;
    g->ts[n] = (int64_t)ts;
    g->data[n] = payload;
    g->meta[n] = meta;
    return g->n = n + 1;
}

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
        if (FTB_UNLIKELY(add(g, ts, p + HEADER, (uint64_t)type << 34 | (uint64_t)slot << 16 | stream) == g->most)) /* as ftb_meta */
            full = plan;
        p = next;
        events++;
    }
    ftb_leave_run(s, p, ts, events);
    return full;
}
