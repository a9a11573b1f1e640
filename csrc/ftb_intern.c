/* Strings to small codes, in the order in which they are first seen. */
#include "ftb_inline.h"
#include "ftbuf.h"

#include <stdlib.h>

#define FIRST_TABLE 64u
#define MAX_STRINGS 0x7fffffffu /* codes are int32 */

static uint32_t hash_bytes(const uint8_t *s, size_t n)
{
    uint64_t h = n * 0x9e3779b97f4a7c15ULL;
    while (n >= 8) {
        uint64_t w;
        memcpy(&w, s, 8);
        h = (h ^ w) * 0xff51afd7ed558ccdULL;
        h ^= h >> 32;
        s += 8;
        n -= 8;
    }
    uint64_t w = 0;
    if (n > 0)
        memcpy(&w, s, n);
    h = (h ^ w) * 0xff51afd7ed558ccdULL;
    return (uint32_t)(h ^ h >> 29);
}

int ftb_intern_init(ftb_intern *in)
{
    memset(in, 0, sizeof *in);
    in->table = calloc(FIRST_TABLE, sizeof *in->table);
    if (in->table == NULL)
        return FTB_NO_MEMORY;
    in->mask = FIRST_TABLE - 1;
    in->near[0].low = 1; /* zeros, as elsewhere, would belong here */
    uint64_t zero = 0;
    return ftb_column_append(&in->offsets, &zero, sizeof zero);
}

void ftb_intern_free(ftb_intern *in)
{
    ftb_column_free(&in->bytes);
    ftb_column_free(&in->offsets);
    free(in->table);
    in->table = NULL;
}

static int grow(ftb_intern *in)
{
    size_t size = 2 * ((size_t)in->mask + 1);
    uint64_t *table = size > UINT32_MAX ? NULL : calloc(size, sizeof *table);
    if (table == NULL)
        return FTB_NO_MEMORY;
    uint32_t mask = (uint32_t)(size - 1);
    for (size_t i = 0; i <= in->mask; i++) {
        if (in->table[i] == 0)
            continue;
        uint32_t at = (uint32_t)(in->table[i] >> 32) & mask;
        while (table[at] != 0)
            at = (at + 1) & mask;
        table[at] = in->table[i];
    }
    free(in->table);
    in->table = table;
    in->mask = mask;
    return FTB_OK;
}

static int64_t add(ftb_intern *in, const uint8_t *s, size_t n, uint32_t hash, uint32_t at)
{
    uint64_t end = in->bytes.size + n + 1;
    if (in->n >= MAX_STRINGS || ftb_column_reserve(&in->bytes, n + 1) != FTB_OK ||
        ftb_column_append(&in->offsets, &end, sizeof end) != FTB_OK)
        return -1;
    memcpy(in->bytes.data + in->bytes.size, s, n);
    in->bytes.data[in->bytes.size + n] = 0;
    in->bytes.size += n + 1;
    uint32_t code = in->n++;
    in->table[at] = (uint64_t)hash << 32 | (code + 1);
    if (in->n > in->mask / 2 && grow(in) != FTB_OK)
        return -1;
    return code;
}

int64_t ftb_intern_code(ftb_intern *in, const uint8_t *s, size_t n)
{
    uint32_t hash = hash_bytes(s, n);
    const uint64_t *offsets = (const uint64_t *)(const void *)in->offsets.data;
    for (uint32_t at = hash & in->mask;; at = (at + 1) & in->mask) {
        uint64_t entry = in->table[at];
        if (entry == 0)
            return add(in, s, n, hash, at);
        if ((uint32_t)(entry >> 32) != hash)
            continue;
        uint32_t code = (uint32_t)entry - 1;
        if (offsets[code + 1] - offsets[code] == n + 1 && memcmp(in->bytes.data + offsets[code], s, n) == 0)
            return code;
    }
}

/* The high bit of the first NUL byte of a word (bytes in memory order), or 0. */
FTB_ALWAYS_INLINE uint64_t first_nul(uint64_t w)
{
    uint64_t nul = (w - 0x0101010101010101ULL) & ~w & 0x8080808080808080ULL;
    return nul & -nul;
}

static size_t padded_length(const uint8_t *s, size_t n)
{
    const uint8_t *nul = memchr(s, 0, n);
    return nul != NULL ? (size_t)(nul - s) : n;
}

static void remember(ftb_intern *in, uint64_t low, uint64_t high, int64_t code)
{
    if (code >= 0)
        *ftb_intern_near(in, low, high) = (ftb_intern_entry){.low = low, .high = high, .code = code};
}

/* What follows the NUL is cleared: kernels leave there what was in the buffer before. */
static int64_t intern_cleared(ftb_intern *in, const uint8_t *s, uint64_t low, uint64_t high)
{
    uint64_t end_low = first_nul(low), end_high = first_nul(high);
    low &= end_low != 0 ? end_low / 0x80 - 1 : UINT64_MAX;
    high &= end_low != 0 ? 0 : end_high != 0 ? end_high / 0x80 - 1 : UINT64_MAX;
    const ftb_intern_entry *entry = ftb_intern_near(in, low, high);
    if (entry->low == low && entry->high == high)
        return entry->code;
    int64_t code = ftb_intern_code(in, s, padded_length(s, 16));
    remember(in, low, high, code);
    return code;
}

int64_t ftb_intern_sixteen(ftb_intern *in, const uint8_t *s)
{
    uint64_t low = ftb_load64(s, 0), high = ftb_load64(s + 8, 0);
    int64_t code = intern_cleared(in, s, low, high);
    remember(in, low, high, code);
    return code;
}
