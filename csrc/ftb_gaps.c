/* Gaps passed by. */
#include "ftb_gaps.h"

#include "ftb_inline.h"

static ftb_gap *waiting(const ftb_gaps *gaps)
{
    return (ftb_gap *)(void *)gaps->waiting.data;
}

static size_t count(const ftb_gaps *gaps)
{
    return gaps->waiting.size / sizeof(ftb_gap);
}

/* Later ones come later, mostly. */
static void sort_in_last(ftb_gap *all, size_t n)
{
    ftb_gap last = all[n - 1];
    size_t i = n - 1;
    for (; i > 0 && all[i - 1].before > last.before; i--)
        all[i] = all[i - 1];
    all[i] = last;
}

int ftb_gaps_add(ftb_gaps *gaps, const int64_t *before, const int64_t *after, const uint16_t *cpu, size_t n)
{
    size_t left = (count(gaps) - gaps->at) * sizeof(ftb_gap);
    if (gaps->at > 0)
        memmove(gaps->waiting.data, waiting(gaps) + gaps->at, left);
    gaps->waiting.size = left;
    gaps->at = 0;
    for (size_t i = 0; i < n; i++) {
        ftb_gap gap = {before[i], after[i], cpu[i]};
        if (ftb_column_append(&gaps->waiting, &gap, sizeof gap) != FTB_OK)
            return FTB_NO_MEMORY;
        sort_in_last(waiting(gaps), count(gaps));
    }
    return FTB_OK;
}

static int note(ftb_gaps *gaps, const ftb_gap *gap)
{
    size_t known = gaps->of_cpu.size / sizeof(int64_t);
    if (gap->cpu >= known) {
        size_t more = ((size_t)gap->cpu + 1 - known) * sizeof(int64_t);
        if (ftb_column_reserve(&gaps->of_cpu, more) != FTB_OK)
            return FTB_NO_MEMORY;
        int64_t *all = (int64_t *)(void *)gaps->of_cpu.data;
        for (; known <= gap->cpu; known++)
            all[known] = INT64_MIN;
        gaps->of_cpu.size += more;
    }
    int64_t *own = (int64_t *)(void *)gaps->of_cpu.data + gap->cpu;
    *own = gap->after > *own ? gap->after : *own;
    gaps->last = !gaps->any || gap->after > gaps->last ? gap->after : gaps->last;
    gaps->any = 1;
    return FTB_OK;
}

int ftb_gaps_pass(ftb_gaps *gaps, int64_t ts)
{
    for (; gaps->at < count(gaps) && waiting(gaps)[gaps->at].before < ts; gaps->at++)
        if (note(gaps, &waiting(gaps)[gaps->at]) != FTB_OK)
            return FTB_NO_MEMORY;
    return FTB_OK;
}

int ftb_gaps_any_since(const ftb_gaps *gaps, int64_t ts)
{
    return gaps->any && gaps->last > ts;
}

int ftb_gaps_since(const ftb_gaps *gaps, uint32_t cpu, int64_t ts)
{
    return cpu < gaps->of_cpu.size / sizeof(int64_t) && ((const int64_t *)(const void *)gaps->of_cpu.data)[cpu] > ts;
}

void ftb_gaps_free(ftb_gaps *gaps)
{
    ftb_column_free(&gaps->waiting);
    ftb_column_free(&gaps->of_cpu);
}
