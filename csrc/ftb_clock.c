/* Time correction, in trace-cmd's order (TC:timestamp_calc) but in integer arithmetic. */
#include "ftb_inline.h"
#include "ftbuf.h"

#define FTB_NS_PER_SECOND 1000000000u

int ftb_clock_is_identity(const ftb_clock *clock)
{
    return clock == NULL || (clock->n_samples == 0 && clock->mult == 0 && clock->hz == 0 && clock->offset == 0);
}

/* Index of the segment's left sample: the last sample at or before ts, clamped so that a right one exists. */
static uint32_t left_sample(const ftb_clock *c, int64_t ts)
{
    uint32_t low = 0, high = c->n_samples - 1;
    while (low + 1 < high) {
        uint32_t middle = low + (high - low) / 2;
        if (c->times[middle] <= ts)
            low = middle;
        else
            high = middle;
    }
    return low;
}

static __int128 rounded_div(__int128 a, __int128 b)
{
    __int128 quotient = a / b, rest = a % b;
    if (rest >= b - rest) /* without 2 * rest or a + b / 2: `a` may be as large as its type */
        return quotient + 1;
    return -rest >= b + rest ? quotient - 1 : quotient;
}

static int64_t guest_to_host(const ftb_clock *c, int64_t ts)
{
    if (c->n_samples == 1) /* a lone sample is not scaled */
        return (int64_t)((uint64_t)ts + (uint64_t)c->offsets[0]);
    uint32_t i = left_sample(c, ts);
    __int128 correction = c->offsets[i];
    if (c->interpolate) { /* also beyond the first and the last sample */
        __int128 along = (__int128)ts - c->times[i];
        __int128 span = (__int128)c->times[i + 1] - c->times[i];
        __int128 rise = (__int128)c->offsets[i + 1] - c->offsets[i];
        __int128 product;
        /* only nonsense samples have equal times, or overflow 128 bits */
        if (span > 0 && !__builtin_mul_overflow(rise, along, &product))
            correction += rounded_div(product, span);
    }
    uint32_t fraction = (uint32_t)c->fractions[i] & 127;
    __int128 scaled = ((__int128)ts * c->scalings[i]) >> fraction;
    return (int64_t)(uint64_t)(scaled + correction);
}

int64_t ftb_clock_apply(const ftb_clock *c, uint64_t raw)
{
    uint64_t ts = raw;
    if (c->n_samples > 0)
        ts = (uint64_t)guest_to_host(c, (int64_t)ts);
    if (c->hz != 0)
        ts = (uint64_t)((unsigned __int128)ts * FTB_NS_PER_SECOND / c->hz);
    else if (c->mult != 0)
        ts = (uint64_t)(((unsigned __int128)ts * c->mult) >> (c->shift & 127));
    return (int64_t)(ts + (uint64_t)c->offset);
}

void ftb_clock_apply_all(const ftb_clock *c, int64_t *ts, uint32_t n)
{
    if (c->n_samples == 0 && c->hz == 0 && c->mult == 0) {
        for (uint32_t i = 0; i < n; i++)
            ts[i] = (int64_t)((uint64_t)ts[i] + (uint64_t)c->offset);
        return;
    }
    for (uint32_t i = 0; i < n; i++)
        ts[i] = ftb_clock_apply(c, (uint64_t)ts[i]);
}
