/* The steps of the walk over one CPU's sub-buffers, for those who need the records themselves and not only refs to them. */
#ifndef FTB_WALK_H
#define FTB_WALK_H

#include "ftbuf.h"

/* K:ring_buffer.c RB_MISSED_EVENTS, RB_MISSED_STORED: flags in the low 32 bits of commit. */
#define MISSED_EVENTS (1u << 31)
#define MISSED_STORED (1u << 30)
/* K:include/linux/ring_buffer.h enum ring_buffer_type */
#define TYPE_LEN_MAX_SHORT 28u
#define TYPE_PADDING 29u
#define TYPE_TIME_EXTEND 30u
#define TYPE_TIME_STAMP 31u
/* 2.6.28 to 2.6.30 had a two-bit type. */
#define OLD_TYPE_PADDING 0u
#define OLD_TYPE_TIME_EXTEND 1u
#define OLD_TYPE_TIME_STAMP 2u
/* K:ring_buffer.c TS_SHIFT and TS_MSB: time deltas have 27 bits, absolute stamps 59. */
#define DELTA_BITS 27
#define DELTA_MASK ((1u << DELTA_BITS) - 1)
/* Every header is one 32-bit word; time extends and stamps have a second one. */
#define HEADER 4u
#define EXTENDED 8u
#define PREFETCH_NEAR 3072 /* bytes ahead, into the first: for walks that wait for little else */
#define PREFETCH 16384 /* bytes ahead, into the second cache: the first has too few places for lines on their way */

/* One record header, taken apart. */
typedef struct {
    uint64_t ts;            /* the running stamp after it */
    const uint8_t *payload; /* NULL: not a data record */
    uint64_t len;           /* of the payload */
    uint64_t total;         /* bytes from header to next header */
    int status;
    int ends_page;
} ftb_record;

/* Open the next page of the segment. Leaves in_page 0 when the page yields nothing. */
int ftb_open_page(ftb_stream *s, ftb_report *report);
/* Step over the next record of the open page. Sets *ends_page when there is none: the status says why. */
int ftb_next_record(ftb_stream *s, ftb_record *r, int *ends_page);
/* Leave the page; `status` names the defect met at `at`, which costs the rest of the committed data. */
int ftb_close_page(ftb_stream *s, int status, const uint8_t *at, ftb_report *report);

/* What a run of records was like, and where the walk goes on. */
static inline void ftb_leave_run(ftb_stream *s, const uint8_t *p, uint64_t ts, uint64_t events)
{
    s->cur = p;
    s->ts = ts;
    s->data_ts = events > 0 ? ts : s->data_ts;
    s->events += events;
}

/* Step over the next record of the open page, whatever it is; a wanted one goes to the batch. Closes the page where it ends. */
int ftb_step_page(ftb_stream *s, const ftb_select *select, ftb_batch *out, ftb_report *report);

/* Walk the open page until it ends (in_page is 0 then) or the batch is full; takes down the time of the last record. */
int ftb_walk_page(ftb_stream *s, const ftb_select *select, ftb_batch *out, ftb_report *report);
/* Whether the shortest data record, of one word, holds its event's id, a u16: the fast walks need not look. */
int ftb_has_short_headers(const ftb_abi *abi);

/* Whether the next pages may be counted without making refs. */
int ftb_may_count(const ftb_stream *s);
/* Count the records of the next few pages, all of which are in the segment. */
int ftb_count_pages(ftb_stream *s, const ftb_select *select, ftb_report *report);

/* Step over as many records as are alike, where this CPU can do that faster than one by one; perhaps none. */
void ftb_walk_alike(ftb_stream *s, const ftb_select *select, ftb_batch *out);

/* The slot of a data record's event. */
uint16_t ftb_record_slot(const ftb_abi *abi, const ftb_select *select, const uint8_t *payload);
/* Whether a record of this corrected time is in the window and of the tasks asked for. */
int ftb_record_wanted(const ftb_abi *abi, const ftb_select *select, int64_t ts, const uint8_t *payload, uint32_t len);
/* Whether a record of a slot matches the filter of its event, if there is one. */
int ftb_filter_matches(const ftb_select *select, uint16_t slot, uint32_t cpu, int64_t ts, const uint8_t *payload, uint32_t len);

#endif
