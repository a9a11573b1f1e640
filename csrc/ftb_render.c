/* The helpers of print formats: flags, symbolic names, arrays, dumps, bitmaps (K:trace_output.c); and globs for filters. */
#include "ftb_emit.h"

/* -- tables: u32 rows, u32 ordered, then rows of u64 value, u32 offset, u32 size; verified by ftb_program_open */

typedef struct {
    uint64_t value;
    uint32_t offset, size;
} table_row;

static table_row row_at(const uint8_t *table, uint32_t index)
{
    table_row row;
    memcpy(&row, table + 8 + 16 * (size_t)index, sizeof row);
    return row;
}

static void emit_row(const ftb_vm *vm, table_row row)
{
    ftb_put(vm->out, (const char *)vm->program->pool + row.offset, row.size);
}

/* Index of the row with this value, or `rows`. */
static uint32_t find_row(const uint8_t *table, uint32_t rows, bool ordered, uint64_t value)
{
    uint32_t low = 0, high = rows;
    if (!ordered || rows <= 8) {
        while (low < rows && row_at(table, low).value != value)
            low++;
        return low;
    }
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (row_at(table, middle).value < value)
            low = middle + 1;
        else
            high = middle;
    }
    return low < rows && row_at(table, low).value == value ? low : rows;
}

void ftb_emit_symbolic(const ftb_vm *vm, const ftb_insn *op, uint64_t value)
{
    const uint8_t *table = vm->program->pool + op->arg;
    uint32_t head[2];
    memcpy(head, table, sizeof head);
    value = (uint64_t)ftb_extend(value, op->size);
    uint32_t index = find_row(table, head[0], head[1] != 0, value);
    if (index < head[0]) {
        emit_row(vm, row_at(table, index));
    } else {
        FTB_PUTS(vm->out, "0x");
        ftb_put_hex(vm->out, value, 1, false);
    }
}

void ftb_emit_flags(const ftb_vm *vm, const ftb_insn *op, uint64_t value)
{
    const uint8_t *table = vm->program->pool + op->arg;
    const char *delimiter = (const char *)vm->program->pool + (uint32_t)op->imm;
    uint32_t delimiter_size = (uint32_t)(op->imm >> 32), rows;
    bool first = true;
    memcpy(&rows, table, sizeof rows);
    value = (uint64_t)ftb_extend(value, op->size);
    for (uint32_t i = 0; i < rows && value != 0; i++) {
        table_row row = row_at(table, i);
        if ((value & row.value) != row.value)
            continue;
        if (!first)
            ftb_put(vm->out, delimiter, delimiter_size);
        first = false;
        emit_row(vm, row);
        value &= ~row.value;
    }
    if (value == 0)
        return;
    if (!first)
        ftb_put(vm->out, delimiter, delimiter_size);
    FTB_PUTS(vm->out, "0x");
    ftb_put_hex(vm->out, value, 1, false);
}

/* -- bytes and arrays */

static uint32_t clamp(int64_t n, uint32_t size)
{
    return n < 0 ? 0 : (uint64_t)n > size ? size : (uint32_t)n;
}

void ftb_emit_hex(const ftb_vm *vm, const ftb_insn *op, ftb_mem mem, int64_t bytes)
{
    uint32_t n = clamp(bytes, mem.size);
    for (uint32_t i = 0; i < n; i++) {
        if (i > 0 && op->arg != 0)
            ftb_put_char(vm->out, (char)op->arg);
        ftb_put_hex(vm->out, mem.data[i], 2, false);
    }
}

void ftb_emit_array(const ftb_vm *vm, const ftb_insn *op, ftb_mem mem, int64_t count, int64_t element)
{
    bool blanks = op->arg != 0;
    ftb_put_char(vm->out, '{');
    if (element == 1 || element == 2 || element == 4 || element == 8) {
        uint32_t n = clamp(count, mem.size / (uint32_t)element);
        for (uint32_t i = 0; i < n; i++) {
            if (i > 0)
                ftb_put(vm->out, ", ", blanks ? 2 : 1);
            FTB_PUTS(vm->out, "0x");
            ftb_put_hex(vm->out, ftb_load(mem.data + i * (size_t)element, (uint32_t)element, vm->program->big_endian), 1, false);
        }
    } else {
        FTB_PUTS(vm->out, "BAD SIZE:");
        ftb_put_signed(vm->out, element);
    }
    ftb_put_char(vm->out, '}');
}

static bool is_printable(ftb_mem mem)
{
    for (uint32_t i = 0; i < mem.size && mem.data[i] != 0; i++) {
        unsigned char c = mem.data[i];
        if ((c < 0x20 || c > 0x7e) && (c < '\t' || c > '\r'))
            return false;
    }
    return true;
}

/* Bytes as the kernel's `fields` option and trace-cmd -R show what they do not understand. */
void ftb_emit_opaque(const ftb_vm *vm, const ftb_insn *op, ftb_mem mem)
{
    if (op->arg == 2 && is_printable(mem)) {
        ftb_put(vm->out, (const char *)mem.data, ftb_string_size(mem));
        return;
    }
    if (op->arg != 0)
        FTB_PUTS(vm->out, "ARRAY[");
    for (uint32_t i = 0; i < mem.size; i++) {
        if (i > 0)
            ftb_put(vm->out, ", ", op->arg != 0 ? 2 : 1);
        ftb_put_hex(vm->out, mem.data[i], 2, false);
    }
    if (op->arg != 0)
        ftb_put_char(vm->out, ']');
}

void ftb_emit_escaped(const ftb_vm *vm, ftb_mem mem)
{
    for (uint32_t i = 0; i < mem.size; i++)
        ftb_put_char(vm->out, mem.data[i] >= 0x20 && mem.data[i] < 0x7f ? (char)mem.data[i] : '.');
}

static void dump_groups(const ftb_vm *vm, ftb_mem line, uint32_t row, uint32_t group)
{
    uint32_t width = 2 * row + row / group - 1, used = 0;
    for (uint32_t i = 0; i + group <= line.size; i += group) {
        if (i > 0)
            ftb_put_char(vm->out, ' ');
        ftb_put_hex(vm->out, ftb_load(line.data + i, group, vm->program->big_endian), (int)(2 * group), false);
        used += 2 * group + (i > 0);
    }
    ftb_fill(vm->out, ' ', used < width ? width - used : 0);
}

/* K:lib/hexdump.c; arguments: prefix type (0 none, 1 address, 2 offset), row size, group size, bytes, ascii. */
void ftb_emit_hexdump(const ftb_vm *vm, const ftb_insn *op, ftb_mem mem, const int64_t *arguments)
{
    uint32_t row = arguments[1] == 32 ? 32 : 16, group = arguments[2] == 2 || arguments[2] == 4 || arguments[2] == 8 ? (uint32_t)arguments[2] : 1;
    uint32_t n = clamp(arguments[3], mem.size);
    ftb_put_char(vm->out, '\n');
    for (uint32_t at = 0; at < n; at += row) {
        ftb_mem line = {mem.data + at, n - at < row ? n - at : row};
        if (line.size % group != 0)
            group = 1;
        ftb_put(vm->out, (const char *)vm->program->pool + op->arg, op->imm);
        if (arguments[0] != 0) {
            ftb_put_hex(vm->out, at, 8, false);
            FTB_PUTS(vm->out, ": ");
        }
        size_t mark = vm->out->len;
        dump_groups(vm, line, row, group);
        if (arguments[4] != 0) {
            FTB_PUTS(vm->out, "  ");
            ftb_emit_escaped(vm, line);
        } else {
            while (vm->out->len > mark && vm->out->data[vm->out->len - 1] == ' ')
                vm->out->len--;
        }
        ftb_put_char(vm->out, '\n');
    }
}

/* -- bitmaps */

bool ftb_bit(const ftb_program *program, ftb_mem mem, uint32_t bit)
{
    uint32_t byte = bit / 8;
    if (program->big_endian) { /* the kernel's bitmaps are arrays of longs */
        uint32_t word = program->long_size;
        byte = byte / word * word + (word - 1 - byte % word);
    }
    return byte < mem.size && mem.data[byte] >> (bit % 8) & 1;
}

static uint32_t chunk_at(const ftb_vm *vm, ftb_mem mem, uint32_t from, uint32_t bits)
{
    uint32_t value = 0;
    for (uint32_t i = 0; i < bits; i++)
        value |= (uint32_t)ftb_bit(vm->program, mem, from + i) << i;
    return value;
}

static void emit_bit_groups(const ftb_vm *vm, ftb_mem mem, uint32_t bits)
{
    uint32_t end = bits, chunk = bits % 32 ? bits % 32 : 32;
    while (end > 0) {
        if (end != bits)
            ftb_put_char(vm->out, ',');
        end -= chunk;
        ftb_put_hex(vm->out, chunk_at(vm, mem, end, chunk), (int)((chunk + 3) / 4), false);
        chunk = 32;
    }
}

static void emit_bit_list(const ftb_vm *vm, ftb_mem mem, uint32_t bits)
{
    bool first = true;
    for (uint32_t bit = 0; bit < bits; bit++) {
        if (!ftb_bit(vm->program, mem, bit))
            continue;
        uint32_t start = bit;
        while (bit + 1 < bits && ftb_bit(vm->program, mem, bit + 1))
            bit++;
        if (!first)
            ftb_put_char(vm->out, ',');
        first = false;
        ftb_put_decimal(vm->out, start);
        if (bit != start) {
            ftb_put_char(vm->out, '-');
            ftb_put_decimal(vm->out, bit);
        }
    }
}

void ftb_emit_bits(const ftb_vm *vm, const ftb_insn *op, ftb_mem mem, int64_t bits)
{
    uint64_t all = (uint64_t)mem.size * 8;
    uint32_t n = bits < 0 || (uint64_t)bits > all ? (uint32_t)(all > UINT32_MAX ? UINT32_MAX : all) : (uint32_t)bits;
    if (op->arg != 0)
        emit_bit_list(vm, mem, n);
    else
        emit_bit_groups(vm, mem, n);
}

/* -- globs (K:lib/glob.c) */

/* One "[...]"; *next is set past it. An unclosed bracket is an ordinary character. */
static bool class_matches(const char *pattern, uint32_t size, unsigned char c, uint32_t *next)
{
    uint32_t i = 1;
    bool inverted = i < size && (pattern[i] == '!' || pattern[i] == '^'), match = false;
    i += inverted;
    uint32_t first = i;
    for (; i < size && (pattern[i] != ']' || i == first); i++) {
        unsigned char low = (unsigned char)pattern[i], high = low;
        if (i + 2 < size && pattern[i + 1] == '-' && pattern[i + 2] != ']') {
            high = (unsigned char)pattern[i + 2];
            i += 2;
        }
        match |= low <= c && c <= high;
    }
    if (i >= size) {
        *next = 1;
        return c == '[';
    }
    *next = i + 1;
    return match != inverted;
}

bool ftb_glob(const char *pattern, uint32_t pattern_size, const char *text, uint32_t text_size)
{
    uint32_t p = 0, t = 0, star = UINT32_MAX, retry = 0, next;
    while (t < text_size) {
        if (p < pattern_size && pattern[p] == '*') {
            star = ++p;
            retry = t;
            continue;
        }
        bool match = false;
        next = 1;
        if (p < pattern_size) {
            if (pattern[p] == '[')
                match = class_matches(pattern + p, pattern_size - p, (unsigned char)text[t], &next);
            else if (pattern[p] == '\\' && p + 1 < pattern_size)
                match = pattern[p + 1] == text[t], next = 2;
            else
                match = pattern[p] == '?' || pattern[p] == text[t];
        }
        if (match) {
            p += next;
            t++;
        } else if (star != UINT32_MAX) {
            p = star;
            t = ++retry;
        } else {
            return false;
        }
    }
    while (p < pattern_size && pattern[p] == '*')
        p++;
    return p == pattern_size;
}
