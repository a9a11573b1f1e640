/* Intervals that one row begins and another ends, by key: an interrupt's handler on a CPU, a task's system call. */
#ifndef FTB_INTERVALS_H
#define FTB_INTERVALS_H

#include "ftb_gaps.h"
#include "ftb_pairs.h"

/* Rows of one step, and their places among the records of all events. */
typedef struct {
    const int64_t *order, *ts;
    const int32_t *key;
    const int64_t *kind; /* what a beginning and its end have in common */
    const uint8_t *flag; /* of ends; NULL: none has one */
    size_t n, at;
} ftb_edge_rows;

/* Intervals of one lane and key follow one another; those of different lanes may lie in one another. */
typedef struct {
    ftb_edge_rows begins, ends;
    /* what came out, of ftb_interval */
    ftb_column whole;
    ftb_column lost; /* another beginning followed, or an end of another kind, or records were lost inside */
} ftb_lane;

typedef struct {
    int64_t duration;
    int64_t inside; /* the time of whole intervals of the key, of other lanes, that lie in it; 0 unless `of_cpus` */
    int64_t kind;
    int32_t key;
    uint32_t flag;
} ftb_interval;

typedef struct {
    int64_t since, kind, inside;
    int32_t key;
    uint32_t is_open;
    uint32_t below, above;        /* the intervals around it on the stack of its key: places + 1, 0: none */
    uint16_t lane, is_moved, unused[2]; /* moved: what it began in has ended */
} ftb_under_way;

typedef struct {
    /* set by the caller */
    ftb_gaps gaps; /* what becomes known is added before a step */
    uint8_t of_cpus; /* a key is a CPU, below 1 << 16, and its own gaps matter; else those of all CPUs do */
    /* state */
    uint16_t n_lanes;
    ftb_column places;    /* uint32 by CPU and lane: the place + 1 of what is under way, 0: none yet */
    ftb_pairs numbers;    /* of other keys and lanes */
    ftb_column others;    /* the same by these numbers */
    ftb_column under_way; /* of ftb_under_way */
    ftb_column tops;      /* uint32 by CPU: what began last and is open, as in `below` */
    ftb_column sources;   /* room for a step's: those that have rows left */
} ftb_intervals;

/* All rows of a step, in their order; lanes are the same in all steps. */
int ftb_intervals_step(ftb_intervals *v, ftb_lane *lanes, uint16_t n_lanes);
void ftb_intervals_free(ftb_intervals *v);

#endif
