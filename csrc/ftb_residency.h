/* How long each of many things (a CPU, say) was in each of its states: a row tells its state from then on. */
#ifndef FTB_RESIDENCY_H
#define FTB_RESIDENCY_H

#include "ftb_gaps.h"
#include "ftb_pairs.h"

typedef struct {
    const int64_t *ts, *key, *state;
    size_t n;
} ftb_state_rows;

typedef struct {
    int64_t key, since, state;
} ftb_in_state;

typedef struct {
    int64_t key, state;
    int64_t count, time, max;
} ftb_state_sums;

typedef struct {
    /* set by the caller */
    ftb_gaps gaps;   /* what becomes known is added before a step */
    int64_t first;   /* since when those that did not begin are in the unknown state */
    int64_t unknown; /* the state in which nothing is known, also where records of any CPU were lost */
    /* state */
    ftb_pairs keys;
    ftb_column now; /* of ftb_in_state, by the key's number */
    /* what came out */
    ftb_pairs numbers; /* of key's number and state */
    ftb_column sums;   /* of ftb_state_sums */
} ftb_residency;

/* Before the first step: since when a key is in the unknown state. */
int ftb_residency_begin(ftb_residency *r, int64_t key, int64_t since);
int ftb_residency_step(ftb_residency *r, const ftb_state_rows *rows);
/* States last up to `end`: nothing may follow. */
int ftb_residency_finish(ftb_residency *r, int64_t end);
void ftb_residency_free(ftb_residency *r);

#endif
