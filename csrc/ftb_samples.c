/* Sums and histograms of samples. */
#include "ftb_samples.h"

#include "ftb_inline.h"

static ftb_sample_sums *sums_of(ftb_samples *s, uint32_t group)
{
    size_t known = s->sums.size / sizeof(ftb_sample_sums);
    if (FTB_UNLIKELY(group >= known)) {
        size_t more = ((size_t)group + 1 - known) * sizeof(ftb_sample_sums);
        if (ftb_column_reserve(&s->sums, more) != FTB_OK)
            return NULL;
        ftb_sample_sums *all = (ftb_sample_sums *)(void *)s->sums.data;
        for (; known <= group; known++)
            all[known] = (ftb_sample_sums){.min = INT64_MAX};
        s->sums.size += more;
    }
    return (ftb_sample_sums *)(void *)s->sums.data + group;
}

/* Small values have buckets of their own. */
static uint32_t bucket_of(uint64_t value)
{
    int bits = value > 0 ? 64 - __builtin_clzll(value) : 0;
    uint32_t shift = bits > FTB_SAMPLE_FINENESS + 1 ? (uint32_t)(bits - 1 - FTB_SAMPLE_FINENESS) : 0;
    return (shift << FTB_SAMPLE_FINENESS) + (uint32_t)(value >> shift);
}

static int count_cell(ftb_samples *s, uint32_t group, uint32_t bucket)
{
    int is_new;
    int64_t cell = (int64_t)group * FTB_SAMPLE_BUCKETS + bucket;
    uint32_t number = ftb_pairs_number(&s->numbers, (uint64_t)cell, 0, &is_new);
    if (FTB_UNLIKELY(is_new)) {
        ftb_sample_cell fresh = {cell, 1};
        return ftb_column_append(&s->cells, &fresh, sizeof fresh);
    }
    if (number == FTB_NO_NUMBER)
        return FTB_NO_MEMORY;
    ((ftb_sample_cell *)(void *)s->cells.data)[number].count++;
    return FTB_OK;
}

int ftb_samples_add(ftb_samples *s, const int32_t *groups, const int64_t *values, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (groups[i] < 0)
            continue;
        int64_t value = values[i] > 0 ? values[i] : 0;
        ftb_sample_sums *sums = sums_of(s, (uint32_t)groups[i]);
        if (sums == NULL || count_cell(s, (uint32_t)groups[i], bucket_of((uint64_t)value)) != FTB_OK)
            return FTB_NO_MEMORY;
        sums->count++;
        sums->total = (int64_t)((uint64_t)sums->total + (uint64_t)value);
        sums->min = value < sums->min ? value : sums->min;
        sums->max = value > sums->max ? value : sums->max;
        sums->last = value;
    }
    return FTB_OK;
}

void ftb_samples_free(ftb_samples *s)
{
    ftb_column_free(&s->sums);
    ftb_column_free(&s->cells);
    ftb_pairs_free(&s->numbers);
}
