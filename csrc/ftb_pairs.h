/* Pairs of numbers -> 0, 1, 2, ... in the order in which they are met: open addressing. */
#ifndef FTB_PAIRS_H
#define FTB_PAIRS_H

#include <stdint.h>

#define FTB_NO_NUMBER 0xffffffffu

typedef struct {
    uint64_t a;
    uint32_t b;
    uint32_t value; /* plus one; 0: free */
} ftb_pair_entry;

typedef struct {
    ftb_pair_entry *entries;
    uint32_t mask, n;
} ftb_pairs;

/* The number of a pair; *is_new when it had none. FTB_NO_NUMBER: no memory. */
uint32_t ftb_pairs_number(ftb_pairs *t, uint64_t a, uint32_t b, int *is_new);
void ftb_pairs_free(ftb_pairs *t);

#endif
