/* Numbers to groups 0, 1, 2, ... in the order in which they are met. */
#ifndef FTB_KEYS_H
#define FTB_KEYS_H

#include "ftb_pairs.h"
#include "ftbuf.h"

typedef struct {
    ftb_pairs numbers;
    ftb_column values; /* int64, by group */
} ftb_keys;

/* The group of each key; one that was not met before gets the next. Groups are int32: FTB_NO_MEMORY where there are more. */
int ftb_keys_groups(ftb_keys *k, const int64_t *keys, size_t n, int32_t *groups);
void ftb_keys_free(ftb_keys *k);

#endif
