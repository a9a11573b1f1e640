/* Stores past the cache of whole lines, by vectors of 64 bytes: for ftb_gather_wide.c alone, which is compiled for CPUs that have
 * them. Each tells whether it did the work: it does only for columns that stand at a line and grow by whole lines. */
#ifndef FTB_WIDE_H
#define FTB_WIDE_H

#include "ftb_inline.h"
#include "ftbuf.h"

#if FTB_HAS_WIDE

#include <immintrin.h>

FTB_WIDE_BEGIN

static inline int is_of_lines(const uint8_t *to, size_t bytes)
{
    return ((uintptr_t)to | bytes) % FTB_LINE == 0;
}

static inline int stream_lines(uint8_t *to, const uint8_t *from, size_t bytes)
{
    if (!is_of_lines(to, bytes))
        return 0;
    for (size_t at = 0; at < bytes; at += FTB_LINE)
        _mm512_stream_si512((__m512i *)(void *)(to + at), _mm512_loadu_si512(from + at));
    return 1;
}

/* Eight values, at the bottom of eight words. */
static inline __m512i values_of(const uint64_t *words, __m128i shift)
{
    return _mm512_srl_epi64(_mm512_loadu_si512(words), shift);
}

static inline __m512i four_bytes_each(const uint64_t *words, __m128i shift)
{
    const __m256i low = _mm512_cvtepi64_epi32(values_of(words, shift)), high = _mm512_cvtepi64_epi32(values_of(words + 8, shift));
    return _mm512_inserti64x4(_mm512_castsi256_si512(low), high, 1);
}

static inline __m512i joined(__m128i a, __m128i b, __m128i c, __m128i d)
{
    const __m256i low = _mm256_inserti128_si256(_mm256_castsi128_si256(a), b, 1);
    const __m256i high = _mm256_inserti128_si256(_mm256_castsi128_si256(c), d, 1);
    return _mm512_inserti64x4(_mm512_castsi256_si512(low), high, 1);
}

static inline __m512i two_bytes_each(const uint64_t *words, __m128i shift)
{
    return joined(_mm512_cvtepi64_epi16(values_of(words, shift)), _mm512_cvtepi64_epi16(values_of(words + 8, shift)),
                  _mm512_cvtepi64_epi16(values_of(words + 16, shift)), _mm512_cvtepi64_epi16(values_of(words + 24, shift)));
}

static inline __m128i sixteen_bytes(const uint64_t *words, __m128i shift)
{
    return _mm_unpacklo_epi64(_mm512_cvtepi64_epi8(values_of(words, shift)), _mm512_cvtepi64_epi8(values_of(words + 8, shift)));
}

static inline __m512i one_byte_each(const uint64_t *words, __m128i shift)
{
    return joined(sixteen_bytes(words, shift), sixteen_bytes(words + 16, shift), sixteen_bytes(words + 32, shift),
                  sixteen_bytes(words + 48, shift));
}

/* Codes of sixteen pids at a time, as comm_code has them; returns how many were found. *all: the codes, or'd. */
static inline uint32_t codes_of_pids(const ftb_comms *comms, const uint32_t *pids, uint32_t n, int32_t *out, int32_t *all)
{
    const __m512i known = _mm512_set1_epi32((int32_t)comms->n_pids), none = _mm512_set1_epi32(-1);
    const __m512i marked = _mm512_set1_epi32(INT32_MIN);
    __m512i together = _mm512_setzero_si512();
    uint32_t i = 0;
    for (; i + 16 <= n; i += 16) {
        const __m512i pid = _mm512_loadu_si512(pids + i);
        const __mmask16 inside = _mm512_cmplt_epu32_mask(pid, known);
        const __m512i found = _mm512_mask_i32gather_epi32(none, inside, pid, comms->code_of_pid, sizeof(int32_t));
        /* a pid that is none, negative, becomes 0; others are marked */
        const __m512i unnamed = _mm512_maskz_xor_epi32((__mmask16)~_mm512_movepi32_mask(pid), pid, marked);
        const __m512i code = _mm512_mask_mov_epi32(found, _mm512_movepi32_mask(found), unnamed);
        _mm512_storeu_si512(out + i, code);
        together = _mm512_or_si512(together, code);
    }
    *all |= _mm512_reduce_or_epi32(together);
    return i;
}

/* Values of 1, 2 or 4 bytes out of their words, as many as they are wide. */
static inline int stream_narrow(uint8_t *to, const uint64_t *words, uint32_t n, const ftb_op *op)
{
    const __m128i shift = _mm_cvtsi32_si128(op->shift);
    const uint32_t width = op->width, values = FTB_LINE / width;
    if (width != op->out_width || !is_of_lines(to, (size_t)n * width))
        return 0;
    for (uint32_t i = 0; i < n; i += values, to += FTB_LINE) {
        const __m512i line = width == 4 ? four_bytes_each(words + i, shift) : width == 2 ? two_bytes_each(words + i, shift)
                                                                                         : one_byte_each(words + i, shift);
        _mm512_stream_si512((__m512i *)(void *)to, line);
    }
    return 1;
}

FTB_WIDE_END

#endif
#endif
