/* Runs of records that are alike, eight at a time: one length, one event, little-endian. Pages of one tracer are full of them.
 *
 * The scalar walk is bound by the instructions of one record; here a vector of headers is compared at once, and the time stamps
 * are a prefix sum. Chosen at run time; where the CPU cannot, the scalar walk does all the work, with the same result. */
#include "ftb_inline.h"
#include "ftb_walk.h"

#if FTB_HAS_WIDE

#include <immintrin.h>

FTB_WIDE_BEGIN

#define LANES 8

/* Header word and id (a u16 right after it) of a record in one 64-bit word. */
#define ALIKE_MASK 0x0000ffff0000001fULL

static inline __m512i headers(const uint8_t *p, size_t stride)
{
    uint64_t w[LANES];
    for (int i = 0; i < LANES; i++)
        memcpy(&w[i], p + (size_t)i * stride, sizeof w[i]);
    return _mm512_set_epi64((int64_t)w[7], (int64_t)w[6], (int64_t)w[5], (int64_t)w[4], (int64_t)w[3], (int64_t)w[2],
                            (int64_t)w[1], (int64_t)w[0]);
}

/* Sums of lanes 0 to i. */
static inline __m512i prefix_sum(__m512i v)
{
    const __m512i zero = _mm512_setzero_si512();
    v = _mm512_add_epi64(v, _mm512_alignr_epi64(v, zero, 7));
    v = _mm512_add_epi64(v, _mm512_alignr_epi64(v, zero, 6));
    return _mm512_add_epi64(v, _mm512_alignr_epi64(v, zero, 4));
}

static void walk_alike(ftb_stream *s, const ftb_select *select, ftb_batch *out)
{
    uint64_t first = ftb_load64(s->cur, 0) & ALIKE_MASK;
    const uint32_t words = first & 31;
    if (words - 1 >= TYPE_LEN_MAX_SHORT) /* not a short data record */
        return;
    const size_t stride = HEADER + 4 * (size_t)words;
    const uint16_t slot = select->slot_of[(uint16_t)(first >> 32)];
    const uint8_t *p = s->cur;
    size_t left = (size_t)(s->end - p);
    uint32_t n = out->n, keep = slot != FTB_NO_SLOT ? LANES : 0;
    const __m512i alike = _mm512_set1_epi64((int64_t)first), mask = _mm512_set1_epi64((int64_t)ALIKE_MASK);
    const __m512i delta_mask = _mm512_set1_epi64(DELTA_MASK), last = _mm512_set1_epi64(7);
    const __m512i meta = _mm512_set1_epi64((int64_t)ftb_meta(4 * words, slot, (uint16_t)s->index));
    const int64_t step = (int64_t)stride;
    const __m512i offsets = _mm512_set_epi64(7 * step, 6 * step, 5 * step, 4 * step, 3 * step, 2 * step, step, 0);
    __m512i ts = _mm512_set1_epi64((int64_t)s->ts);
    uint64_t events = 0;

    while (n + LANES <= FTB_BATCH && left >= LANES * stride) {
        for (size_t line = 0; line < LANES * stride; line += 64) {
            __builtin_prefetch(p + PREFETCH + line, 0, 1);
            __builtin_prefetch(p + PREFETCH_NEAR + line, 0, 3);
        }
        __m512i w = headers(p, stride);
        if (_mm512_cmpneq_epi64_mask(_mm512_and_si512(w, mask), alike) != 0)
            break;
        __m512i deltas = _mm512_and_si512(_mm512_srli_epi64(w, 5), delta_mask);
        __m512i stamps = _mm512_add_epi64(ts, prefix_sum(deltas));
        _mm512_storeu_si512(out->ts + n, stamps);
        _mm512_storeu_si512(out->data + n, _mm512_add_epi64(_mm512_set1_epi64((int64_t)(uintptr_t)(p + HEADER)), offsets));
        _mm512_storeu_si512(out->meta + n, meta);
        ts = _mm512_permutexvar_epi64(last, stamps);
        n += keep;
        p += LANES * stride;
        left -= LANES * stride;
        events += LANES;
    }
    if (events == 0)
        return;
    s->cur = p;
    s->ts = s->data_ts = (uint64_t)_mm_cvtsi128_si64(_mm512_castsi512_si128(ts));
    s->events += events;
    if (n > out->n)
        out->differ |= out->meta[out->n] ^ out->meta[0];
    out->n = n;
}

FTB_WIDE_END

void ftb_walk_alike(ftb_stream *s, const ftb_select *select, ftb_batch *out)
{
    /* the id right behind the header, and eight bytes to load of the last record */
    if (s->abi->big_endian || s->abi->type_offset != 0 || (size_t)(s->end - s->cur) < 8 || !ftb_is_wide())
        return;
    walk_alike(s, select, out);
}

#else

void ftb_walk_alike(ftb_stream *s, const ftb_select *select, ftb_batch *out)
{
    (void)s, (void)select, (void)out;
}

#endif
