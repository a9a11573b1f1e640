/* Gaps passed by. */
#include "ftb_gaps.h"

#include "ftb_inline.h"

static int note(ftb_gaps *gaps, uint16_t cpu, int64_t after)
{
    size_t known = gaps->of_cpu.size / sizeof(int64_t);
    if (cpu >= known) {
        size_t more = ((size_t)cpu + 1 - known) * sizeof(int64_t);
        if (ftb_column_reserve(&gaps->of_cpu, more) != FTB_OK)
            return FTB_NO_MEMORY;
        int64_t *all = (int64_t *)(void *)gaps->of_cpu.data;
        for (; known <= cpu; known++)
            all[known] = INT64_MIN;
        gaps->of_cpu.size += more;
    }
    int64_t *own = (int64_t *)(void *)gaps->of_cpu.data + cpu;
    *own = after > *own ? after : *own;
    return FTB_OK;
}

static int pass_more(ftb_gaps *gaps, int64_t ts)
{
    for (; gaps->at < gaps->n && gaps->before[gaps->at] < ts; gaps->at++) {
        int64_t after = gaps->after[gaps->at];
        gaps->last = gaps->at == 0 || after > gaps->last ? after : gaps->last;
        if (note(gaps, gaps->cpu[gaps->at], after) != FTB_OK)
            return FTB_NO_MEMORY;
    }
    return FTB_OK;
}

int ftb_gaps_pass(ftb_gaps *gaps, int64_t ts)
{
    return FTB_LIKELY(gaps->at >= gaps->n || gaps->before[gaps->at] >= ts) ? FTB_OK : pass_more(gaps, ts);
}

int ftb_gaps_any_since(const ftb_gaps *gaps, int64_t ts)
{
    return gaps->at > 0 && gaps->last > ts;
}

int ftb_gaps_since(const ftb_gaps *gaps, uint32_t cpu, int64_t ts)
{
    return cpu < gaps->of_cpu.size / sizeof(int64_t) && ((const int64_t *)(const void *)gaps->of_cpu.data)[cpu] > ts;
}

void ftb_gaps_free(ftb_gaps *gaps)
{
    ftb_column_free(&gaps->of_cpu);
}
