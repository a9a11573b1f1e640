/* Pairs of numbers and their places. */
#include "ftb_pairs.h"

#include "ftb_inline.h"

#include <stdlib.h>

#define FIRST_TABLE 256u

static uint32_t hash_pair(uint64_t a, uint32_t b)
{
    uint64_t h = (a ^ (uint64_t)b * 0x9e3779b97f4a7c15ULL) * 0xff51afd7ed558ccdULL;
    return (uint32_t)(h ^ h >> 32);
}

static int grow(ftb_pairs *t)
{
    size_t size = t->entries == NULL ? FIRST_TABLE : 2 * ((size_t)t->mask + 1);
    ftb_pair_entry *entries = size > UINT32_MAX ? NULL : calloc(size, sizeof *entries);
    if (entries == NULL)
        return 0;
    uint32_t mask = (uint32_t)(size - 1);
    for (size_t i = 0; t->entries != NULL && i <= t->mask; i++) {
        const ftb_pair_entry *e = &t->entries[i];
        if (e->value == 0)
            continue;
        uint32_t at = hash_pair(e->a, e->b) & mask;
        while (entries[at].value != 0)
            at = (at + 1) & mask;
        entries[at] = *e;
    }
    free(t->entries);
    t->entries = entries;
    t->mask = mask;
    return 1;
}

uint32_t ftb_pairs_number(ftb_pairs *t, uint64_t a, uint32_t b, int *is_new)
{
    *is_new = 0;
    if (FTB_UNLIKELY(t->entries == NULL || t->n > t->mask / 2) && !grow(t))
        return FTB_NO_NUMBER;
    uint32_t at = hash_pair(a, b) & t->mask;
    for (; t->entries[at].value != 0; at = (at + 1) & t->mask)
        if (t->entries[at].a == a && t->entries[at].b == b)
            return t->entries[at].value - 1;
    *is_new = 1;
    t->entries[at] = (ftb_pair_entry){a, b, ++t->n};
    return t->n - 1;
}

void ftb_pairs_free(ftb_pairs *t)
{
    free(t->entries);
    t->entries = NULL;
}
