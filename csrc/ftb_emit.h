/* Inside of the evaluator: appending text, and one function for each operation that emits. */
#ifndef FTB_EMIT_H
#define FTB_EMIT_H

#include "ftb_expr.h"
#include "ftb_inline.h"

#if defined(__SSE2__) && defined(__x86_64__)
#include <emmintrin.h>
#endif

#define FTB_REGEX_CLASSES 8 /* offset of the classes in an automaton */

typedef struct ftb_mem {
    const uint8_t *data;
    uint32_t size;
} ftb_mem;

/* What an operation takes from the stacks of integers and of mems, and what it puts there. */
typedef struct ftb_effect {
    uint8_t ipop, ipush, mpop, mpush;
} ftb_effect;

extern const ftb_effect ftb_effects[FTB_X_COUNT];

/* What the emitting operations need. */
typedef struct ftb_vm {
    const ftb_program *program;
    const ftb_text_context *context;
    const uint8_t *record;
    size_t size;
    size_t begin;  /* of this program's text */
    size_t cursor; /* in the argument buffer of a trace_printk */
    ftb_text *out;
    int nesting; /* a trace_printk format inside an event */
} ftb_vm;

/* Room for n more bytes, or NULL (and the text's status says why). */
FTB_ALWAYS_INLINE char *ftb_room(ftb_text *text, size_t n)
{
    if (FTB_UNLIKELY(n > text->cap - text->len) && ftb_text_reserve(text, n) != FTB_OK)
        return NULL;
    return text->data + text->len;
}

/* memcpy, without a call for the short pieces that texts are made of: two blocks that may overlap. */
FTB_ALWAYS_INLINE void ftb_copy(char *p, const char *s, size_t n)
{
    if (n > 32) {
        memcpy(p, s, n);
    } else if (n >= 16) {
        char head[16], tail[16];
        memcpy(head, s, 16);
        memcpy(tail, s + n - 16, 16);
        memcpy(p, head, 16);
        memcpy(p + n - 16, tail, 16);
    } else if (n >= 8) {
        uint64_t head, tail;
        memcpy(&head, s, 8);
        memcpy(&tail, s + n - 8, 8);
        memcpy(p, &head, 8);
        memcpy(p + n - 8, &tail, 8);
    } else if (n >= 4) {
        uint32_t head, tail;
        memcpy(&head, s, 4);
        memcpy(&tail, s + n - 4, 4);
        memcpy(p, &head, 4);
        memcpy(p + n - 4, &tail, 4);
    } else if (n > 0) {
        p[0] = s[0];
        p[n / 2] = s[n / 2];
        p[n - 1] = s[n - 1];
    }
}

FTB_ALWAYS_INLINE void ftb_put(ftb_text *text, const char *data, size_t n)
{
    char *p = ftb_room(text, n);
    if (FTB_LIKELY(p != NULL)) {
        ftb_copy(p, data, n);
        text->len += n;
    }
}

FTB_ALWAYS_INLINE void ftb_put_char(ftb_text *text, char c)
{
    char *p = ftb_room(text, 1);
    if (FTB_LIKELY(p != NULL)) {
        *p = c;
        text->len++;
    }
}

#define FTB_PUTS(text, literal) ftb_put(text, literal, sizeof(literal) - 1)

/* Eight characters of a word whose first one is its lowest byte. */
FTB_ALWAYS_INLINE void ftb_store_eight(char *p, uint64_t word)
{
    word = FTB_HOST_BIG ? __builtin_bswap64(word) : word;
    memcpy(p, &word, 8);
}

/* The decimal digits, a byte each, of a value below 10^8: halves, quarters and eighths of the word are split at once. */
FTB_ALWAYS_INLINE uint64_t ftb_eight_digits(uint32_t value)
{
    uint64_t x = value / 10000 | (uint64_t)(value % 10000) << 32;
    uint64_t hundreds = (x * 10486 >> 20) & UINT64_C(0x0000007f0000007f);
    x = hundreds | (x - 100 * hundreds) << 16;
    uint64_t tens = (x * 103 >> 10) & UINT64_C(0x000f000f000f000f);
    return tens | (x - 10 * tens) << 8;
}

#define FTB_ASCII_ZEROS UINT64_C(0x3030303030303030)
#define FTB_EIGHT_DIGITS 100000000u
#define FTB_NUMBER_ROOM 32 /* bytes that a number's digits may touch */

/* ---- digits at p, where FTB_NUMBER_ROOM bytes are free: these return where the digits end */

FTB_ALWAYS_INLINE char *ftb_decimal_below(char *p, uint32_t value)
{
    uint64_t digits = ftb_eight_digits(value);
    unsigned skipped = (unsigned)__builtin_ctzll(digits | UINT64_C(1) << 56) & ~7u; /* the last digit always counts */
    ftb_store_eight(p, (digits + FTB_ASCII_ZEROS) >> skipped);
    return p + 8 - skipped / 8;
}

FTB_ALWAYS_INLINE char *ftb_decimal(char *p, uint64_t value)
{
    if (value < FTB_EIGHT_DIGITS)
        return ftb_decimal_below(p, (uint32_t)value);
    uint64_t high = value / FTB_EIGHT_DIGITS;
    if (high < FTB_EIGHT_DIGITS) {
        p = ftb_decimal_below(p, (uint32_t)high);
    } else {
        p = ftb_decimal_below(p, (uint32_t)(high / FTB_EIGHT_DIGITS));
        ftb_store_eight(p, ftb_eight_digits((uint32_t)(high % FTB_EIGHT_DIGITS)) + FTB_ASCII_ZEROS);
        p += 8;
    }
    ftb_store_eight(p, ftb_eight_digits((uint32_t)(value % FTB_EIGHT_DIGITS)) + FTB_ASCII_ZEROS);
    return p + 8;
}

FTB_ALWAYS_INLINE char *ftb_signed(char *p, int64_t value)
{
    *p = '-';
    return ftb_decimal(p + (value < 0), value < 0 ? 0 - (uint64_t)value : (uint64_t)value);
}

/* All sixteen hexadecimal digits of a value: its nibbles, each in a byte of its own, become characters all at once. */
#if defined(__SSE2__) && defined(__x86_64__)
FTB_ALWAYS_INLINE void ftb_sixteen_hex(char *p, uint64_t value, bool upper)
{
    const __m128i nibble = _mm_set1_epi8(15);
    __m128i bytes = _mm_cvtsi64_si128((int64_t)__builtin_bswap64(value));
    __m128i digits = _mm_unpacklo_epi8(_mm_and_si128(_mm_srli_epi16(bytes, 4), nibble), _mm_and_si128(bytes, nibble));
    __m128i is_letter = _mm_cmpgt_epi8(digits, _mm_set1_epi8(9));
    __m128i letters = _mm_and_si128(is_letter, _mm_set1_epi8((upper ? 'A' : 'a') - '0' - 10));
    _mm_storeu_si128((__m128i *)(void *)p, _mm_add_epi8(_mm_add_epi8(digits, _mm_set1_epi8('0')), letters));
}
#else
FTB_ALWAYS_INLINE uint64_t ftb_eight_hex(uint32_t value, bool upper)
{
    uint64_t x = __builtin_bswap32(value);
    x = (x & 0xffff0000) << 16 | (x & 0xffff);
    x = (x << 8 | x) & UINT64_C(0x00ff00ff00ff00ff);
    x = (x << 8 | x >> 4) & UINT64_C(0x0f0f0f0f0f0f0f0f);
    uint64_t is_letter = (x + UINT64_C(0x0606060606060606)) >> 4 & UINT64_C(0x0101010101010101);
    return x + FTB_ASCII_ZEROS + is_letter * ((upper ? 'A' : 'a') - '0' - 10u);
}

FTB_ALWAYS_INLINE void ftb_sixteen_hex(char *p, uint64_t value, bool upper)
{
    ftb_store_eight(p, ftb_eight_hex((uint32_t)(value >> 32), upper));
    ftb_store_eight(p + 8, ftb_eight_hex((uint32_t)value, upper));
}
#endif

/* n of its last digits, at the most 16. */
FTB_ALWAYS_INLINE char *ftb_hex_digits(char *p, uint64_t value, unsigned n, bool upper)
{
    ftb_sixteen_hex(p, value << ((64 - 4 * n) & 63), upper);
    return p + n;
}

FTB_ALWAYS_INLINE char *ftb_hex(char *p, uint64_t value)
{
    return ftb_hex_digits(p, value, (unsigned)(67 - __builtin_clzll(value | 1)) / 4, false);
}

void ftb_fill(ftb_text *text, char c, size_t n);
void ftb_put_decimal(ftb_text *text, uint64_t value);
void ftb_put_signed(ftb_text *text, int64_t value);
void ftb_put_hex(ftb_text *text, uint64_t value, int min_digits, bool upper);
void ftb_put_number(ftb_text *text, uint64_t spec, int64_t value, bool is_signed, int width, int precision);
void ftb_put_padded(ftb_text *text, const char *data, size_t n, int width, bool left);
void ftb_pad_since(ftb_text *text, size_t mark, int width, int precision, bool left);
uint32_t ftb_string_size(ftb_mem mem); /* up to the first NUL */

FTB_ALWAYS_INLINE int64_t ftb_extend(uint64_t value, unsigned size)
{
    switch (size) {
    case 1: return (int64_t)(uint8_t)value;
    case 2: return (int64_t)(uint16_t)value;
    case 4: return (int64_t)(uint32_t)value;
    case 0x81: return (int8_t)value;
    case 0x82: return (int16_t)value;
    case 0x84: return (int32_t)value;
    default: return (int64_t)value;
    }
}

void ftb_emit_pointer_string(const ftb_vm *vm, const ftb_insn *op, uint64_t value);
void ftb_emit_pointer(const ftb_vm *vm, const ftb_insn *op, uint64_t value);
void ftb_emit_symbol(const ftb_vm *vm, unsigned form, uint64_t address);
void ftb_emit_calls(const ftb_vm *vm, uint64_t function, uint64_t parent);
void ftb_emit_flags(const ftb_vm *vm, const ftb_insn *op, uint64_t value);
void ftb_emit_symbolic(const ftb_vm *vm, const ftb_insn *op, uint64_t value);
void ftb_emit_hex(const ftb_vm *vm, const ftb_insn *op, ftb_mem mem, int64_t bytes);
void ftb_emit_array(const ftb_vm *vm, const ftb_insn *op, ftb_mem mem, int64_t count, int64_t element);
void ftb_emit_hexdump(const ftb_vm *vm, const ftb_insn *op, ftb_mem mem, const int64_t *arguments);
void ftb_emit_bits(const ftb_vm *vm, const ftb_insn *op, ftb_mem mem, int64_t bits);
void ftb_emit_mac(const ftb_vm *vm, const ftb_insn *op, ftb_mem mem);
void ftb_emit_ip4(const ftb_vm *vm, const ftb_insn *op, ftb_mem mem);
void ftb_emit_ip6(const ftb_vm *vm, const ftb_insn *op, ftb_mem mem);
void ftb_emit_sockaddr(const ftb_vm *vm, const ftb_insn *op, ftb_mem mem);
void ftb_emit_uuid(const ftb_vm *vm, const ftb_insn *op, ftb_mem mem);
void ftb_emit_fourcc(const ftb_vm *vm, ftb_mem mem);
void ftb_emit_escaped(const ftb_vm *vm, ftb_mem mem);
void ftb_emit_opaque(const ftb_vm *vm, const ftb_insn *op, ftb_mem mem);
void ftb_emit_cdb(const ftb_vm *vm, ftb_mem mem, int64_t bytes);
void ftb_emit_stack(const ftb_vm *vm, const ftb_insn *op, ftb_mem mem, int64_t entries);

/* Is bit i of a bitmap of kernel longs set? */
bool ftb_bit(const ftb_program *program, ftb_mem mem, uint32_t bit);
bool ftb_glob(const char *pattern, uint32_t pattern_size, const char *text, uint32_t text_size);
/* The string at a kernel address; size 0 and data NULL when it is not known. */
ftb_mem ftb_kernel_string(const ftb_text_context *context, uint64_t address);
ftb_mem ftb_comm_of(const ftb_text_context *context, int64_t pid);
/* Index of address in an ascending table, or count. */
uint32_t ftb_find_address(const uint64_t *addresses, uint32_t count, uint64_t address);

/* Evaluate; text goes to vm->out, a value to *value. Neither may be asked of a program that does not have it. */
int ftb_run(ftb_vm *vm, int64_t *value);

#endif
