/* Counting alone: records that nobody wants to see need no refs.
 *
 * A record's length says where the next one begins, so that the walk over a page waits for each header in turn. Here four pages are
 * walked at once, whose headers the CPU need not wait for one after another. Only as far as all goes well: each page is then opened
 * and walked to its end as usual, from where its lane has come to, so that whatever is unusual is told in one place. */
#include "ftb_inline.h"
#include "ftb_walk.h"

#define PAGES 4
#define AHEAD 20480 /* bytes: the pages of the next turn, into the second cache */

/* One page on its way. */
typedef struct {
    const uint8_t *at, *end;
    uint64_t delta;
} lane;

/* Of a page with losses (flags in commit) or a damaged header: nothing. */
static lane lane_of(const ftb_stream *s, size_t page)
{
    const ftb_abi *abi = s->abi;
    const uint8_t *begin = s->data + page + abi->data_offset;
    const uint32_t commit = ftb_load32(s->data + page + 8, 0);
    return (lane){begin, begin + (commit <= abi->subbuf_size - abi->data_offset ? commit : 0), 0};
}

typedef struct {
    const uint16_t *slot_of;
    uint64_t *count_of_slot;
    uint32_t type_offset;
} counting;

/* Over one short data record that fits; 0: there is none. What stands at the lane's end may be loaded: a page follows. */
FTB_ALWAYS_INLINE int step(lane *l, const counting *c)
{
    const uint32_t word = ftb_load32(l->at, 0), type = word & 31;
    const uint8_t *next = l->at + HEADER + 4 * (size_t)type;
    __builtin_prefetch(l->at + AHEAD, 0, 1);
    if (type - 1 >= TYPE_LEN_MAX_SHORT || next > l->end)
        return 0;
    const uint16_t slot = c->slot_of[ftb_load16(l->at + HEADER + c->type_offset, 0)];
    if (FTB_LIKELY(slot != FTB_NO_SLOT))
        c->count_of_slot[slot]++;
    l->delta += word >> 5;
    l->at = next;
    return 1;
}

/* Until one of the lanes has no more such records; `events` are those of each. */
static void run(lane *lanes, const counting *with, uint64_t *events)
{
    lane a = lanes[0], b = lanes[1], c = lanes[2], d = lanes[3]; /* copies, to be kept in registers */
    const counting by = *with;
    uint64_t n = 0;
    uint32_t ended = 0;
    for (;; n++) {
        if (!step(&a, &by))
            break;
        ended = 1;
        if (!step(&b, &by))
            break;
        ended = 2;
        if (!step(&c, &by))
            break;
        ended = 3;
        if (!step(&d, &by))
            break;
        ended = 0;
    }
    lanes[0] = a, lanes[1] = b, lanes[2] = c, lanes[3] = d;
    for (uint32_t k = 0; k < PAGES; k++)
        events[k] = n + (k < ended);
}

/* The rest of the open page. */
static int count_rest(ftb_stream *s, const ftb_select *select, ftb_report *report)
{
    ftb_batch rest;
    while (s->in_page) {
        ftb_batch_clear(&rest);
        int status = ftb_walk_page(s, select, &rest, report);
        for (uint32_t i = 0; i < rest.n; i++)
            s->count_of_slot[ftb_slot(&rest, i)]++;
        if (status != FTB_OK)
            return status;
    }
    return FTB_OK;
}

static int count_page(ftb_stream *s, const ftb_select *select, const lane *l, uint64_t events, ftb_report *report)
{
    int status = ftb_open_page(s, report);
    if (status != FTB_OK || !s->in_page)
        return status;
    if (events > 0) {
        s->cur = l->at;
        s->ts += l->delta;
        s->data_ts = s->ts;
        s->events += events;
    }
    return count_rest(s, select, report);
}

/* Whether two pages begin with records of one length, several to a cache line: ftb_walk_alike is faster then. */
static int begin_alike(const ftb_stream *s)
{
    const uint8_t *first = s->data + s->next_page + s->abi->data_offset;
    const uint32_t type = ftb_load32(first, 0) & 31, length = HEADER + 4 * type;
    return length < FTB_LINE && type == (ftb_load32(first + length, 0) & 31) && type == (ftb_load32(first + s->abi->subbuf_size, 0) & 31);
}

int ftb_may_count(const ftb_stream *s)
{
    return s->count_of_slot != NULL && ftb_has_short_headers(s->abi) && !s->abi->big_endian &&
           s->size - s->next_page >= (PAGES + 1) * (size_t)s->abi->subbuf_size && !begin_alike(s);
}

int ftb_count_pages(ftb_stream *s, const ftb_select *select, ftb_report *report)
{
    const counting by = {select->slot_of, s->count_of_slot, s->abi->type_offset};
    const size_t subbuf = s->abi->subbuf_size, first = s->next_page;
    lane lanes[PAGES] = {lane_of(s, first), lane_of(s, first + subbuf), lane_of(s, first + 2 * subbuf), lane_of(s, first + 3 * subbuf)};
    uint64_t events[PAGES];
    run(lanes, &by, events);
    for (uint32_t k = 0; k < PAGES; k++) {
        int status = count_page(s, select, &lanes[k], events[k], report);
        if (status != FTB_OK)
            return status;
    }
    return FTB_OK;
}
