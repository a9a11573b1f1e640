/* Inside of the evaluator: appending text, and one function for each operation that emits. */
#ifndef FTB_EMIT_H
#define FTB_EMIT_H

#include "ftb_expr.h"
#include "ftb_inline.h"

#define FTB_REGEX_CLASSES 8 /* offset of the classes in an automaton */

typedef struct ftb_mem {
    const uint8_t *data;
    uint32_t size;
} ftb_mem;

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

extern const char ftb_digit_pairs[]; /* 00 to 99 */
extern const uint64_t ftb_powers_of_ten[20];

/* How many decimal digits a value has. */
FTB_ALWAYS_INLINE unsigned ftb_decimal_size(uint64_t value)
{
    unsigned about = (unsigned)(64 - __builtin_clzll(value | 1)) * 1233 >> 12; /* log10(2) is 1233 / 4096; one too few at the most */
    return about + (value >= ftb_powers_of_ten[about]) + (value == 0);
}

/* Digits of a value, ending just before `end`; returns the first. */
FTB_ALWAYS_INLINE char *ftb_decimal_before(char *end, uint64_t value)
{
    while (value >= 100) {
        end -= 2;
        memcpy(end, ftb_digit_pairs + 2 * (value % 100), 2);
        value /= 100;
    }
    if (value >= 10) {
        end -= 2;
        memcpy(end, ftb_digit_pairs + 2 * value, 2);
    } else {
        *--end = (char)('0' + value);
    }
    return end;
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
