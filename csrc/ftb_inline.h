/* Small inline helpers: loads in a given byte order and checked arithmetic. */
#ifndef FTB_INLINE_H
#define FTB_INLINE_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define FTB_LIKELY(x) __builtin_expect(!!(x), 1)
#define FTB_UNLIKELY(x) __builtin_expect(!!(x), 0)
#define FTB_ALWAYS_INLINE static inline __attribute__((always_inline))

#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
#define FTB_HOST_BIG 1
#else
#define FTB_HOST_BIG 0
#endif

#define FTB_LINE 64u /* bytes of a cache line */

/* Code for CPUs with AVX-512 is compiled beside the usual one, and chosen at run time. FTB_NARROW: leave it out, for tests. */
#if defined(__x86_64__) && defined(__GNUC__) && defined(__SSE2__) && !defined(FTB_NARROW)
#define FTB_HAS_WIDE 1
/* What stands between these is compiled for such CPUs. */
#if defined(__clang__)
#define FTB_WIDE_BEGIN _Pragma("clang attribute push(__attribute__((target(\"avx512f,avx512bw,avx512dq,avx512vl,bmi2\"))), apply_to = function)")
#define FTB_WIDE_END _Pragma("clang attribute pop")
#else
#define FTB_WIDE_BEGIN _Pragma("GCC push_options") _Pragma("GCC target(\"avx512f,avx512bw,avx512dq,avx512vl,bmi2\")")
#define FTB_WIDE_END _Pragma("GCC pop_options")
#endif
FTB_ALWAYS_INLINE int ftb_is_wide(void)
{
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
           __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("bmi2");
}
#else
#define FTB_HAS_WIDE 0
#endif

/* Every load goes through memcpy: pages have no alignment that the host's ABI would accept. */
FTB_ALWAYS_INLINE uint16_t ftb_load16(const uint8_t *p, int big)
{
    uint16_t v;
    memcpy(&v, p, sizeof v);
    return big == FTB_HOST_BIG ? v : __builtin_bswap16(v);
}

FTB_ALWAYS_INLINE uint32_t ftb_load32(const uint8_t *p, int big)
{
    uint32_t v;
    memcpy(&v, p, sizeof v);
    return big == FTB_HOST_BIG ? v : __builtin_bswap32(v);
}

FTB_ALWAYS_INLINE uint64_t ftb_load64(const uint8_t *p, int big)
{
    uint64_t v;
    memcpy(&v, p, sizeof v);
    return big == FTB_HOST_BIG ? v : __builtin_bswap64(v);
}

/* An unsigned integer of 1, 2, 4 or 8 bytes; other widths give 0. */
FTB_ALWAYS_INLINE uint64_t ftb_load(const uint8_t *p, uint32_t width, int big)
{
    switch (width) {
    case 1: return *p;
    case 2: return ftb_load16(p, big);
    case 4: return ftb_load32(p, big);
    case 8: return ftb_load64(p, big);
    default: return 0;
    }
}

FTB_ALWAYS_INLINE int ftb_mul_overflows(size_t a, size_t b, size_t *out)
{
    return __builtin_mul_overflow(a, b, out);
}

FTB_ALWAYS_INLINE int ftb_add_overflows(size_t a, size_t b, size_t *out)
{
    return __builtin_add_overflow(a, b, out);
}

#endif
