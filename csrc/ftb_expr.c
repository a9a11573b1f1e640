/* The evaluator of expressions and print formats. The program is verified, so only what depends on the record is checked. */
#include "ftb_emit.h"

#define FTB_WIDTH_MAX 4096 /* of a '*' width: what a record asks for is bounded */

/* The bytes of a dynamic field. */
static int dynamic_mem(const ftb_vm *vm, const ftb_insn *op, ftb_mem *mem)
{
    int big = vm->program->big_endian;
    if (op->size == FTB_WHERE_SHORT_LOC) {
        if (vm->size < 2 || op->arg > vm->size - 2)
            return FTB_RECORD_SHORT;
        size_t offset = ftb_load16(vm->record + op->arg, big);
        if (offset > vm->size)
            return FTB_FIELD_OUTSIDE;
        *mem = (ftb_mem){vm->record + offset, (uint32_t)(vm->size - offset)};
        return FTB_OK;
    }
    if (vm->size < 4 || op->arg > vm->size - 4)
        return FTB_RECORD_SHORT;
    uint32_t location = ftb_load32(vm->record + op->arg, big);
    size_t offset = location & 0xffff, size = location >> 16;
    if (op->size == FTB_WHERE_REL_LOC)
        offset += (size_t)op->arg + 4;
    if (size == 0)
        offset = 0;
    if (offset > vm->size || size > vm->size - offset)
        return FTB_FIELD_OUTSIDE;
    *mem = (ftb_mem){vm->record + offset, (uint32_t)size};
    return FTB_OK;
}

/* The next argument of a trace_printk: aligned to its size, but to at most 4 (K:lib/vsprintf.c vbin_printf). */
static int next_argument(ftb_vm *vm, unsigned size, int64_t *value)
{
    unsigned bytes = size & ~(unsigned)FTB_SIZE_SIGNED;
    size_t align = bytes < 4 ? bytes : 4;
    size_t at = (vm->cursor + align - 1) & ~(align - 1);
    if (at > vm->size || bytes > vm->size - at)
        return FTB_RECORD_SHORT;
    *value = ftb_extend(ftb_load(vm->record + at, bytes, vm->program->big_endian), size);
    vm->cursor = at + bytes;
    return FTB_OK;
}

static int next_string(ftb_vm *vm, ftb_mem *mem)
{
    if (vm->cursor > vm->size)
        return FTB_RECORD_SHORT;
    *mem = (ftb_mem){vm->record + vm->cursor, (uint32_t)(vm->size - vm->cursor)};
    mem->size = ftb_string_size(*mem);
    vm->cursor += (size_t)mem->size + 1;
    return FTB_OK;
}

static int64_t element_at(const ftb_vm *vm, ftb_mem mem, int64_t index, unsigned size)
{
    uint32_t bytes = size & ~(unsigned)FTB_SIZE_SIGNED;
    if (index < 0 || (uint64_t)index >= mem.size / bytes)
        return 0;
    return ftb_extend(ftb_load(mem.data + (size_t)index * bytes, bytes, vm->program->big_endian), size);
}

/* x / 0 and INT_MIN / -1 are defined here, so that no recording can trap the reader: 0, and INT_MIN. */
static int64_t divide(int64_t a, int64_t b, unsigned size)
{
    if (b == 0)
        return 0;
    if (!(size & FTB_SIZE_SIGNED))
        return (int64_t)((uint64_t)a / (uint64_t)b);
    return b == -1 ? (int64_t)(0 - (uint64_t)a) : a / b;
}

static int64_t modulo(int64_t a, int64_t b, unsigned size)
{
    if (b == 0)
        return 0;
    if (!(size & FTB_SIZE_SIGNED))
        return (int64_t)((uint64_t)a % (uint64_t)b);
    return b == -1 ? 0 : a % b;
}

static int64_t shift(int64_t a, int64_t b, const ftb_insn *op)
{
    unsigned bits = 8 * (op->size & ~(unsigned)FTB_SIZE_SIGNED);
    unsigned n = (unsigned)b & (bits - 1);
    if (op->code == FTB_X_SHL)
        return (int64_t)((uint64_t)a << n);
    return op->size & FTB_SIZE_SIGNED ? a >> n : (int64_t)((uint64_t)a >> n);
}

static int64_t arithmetic(const ftb_insn *op, int64_t a, int64_t b)
{
    uint64_t x = (uint64_t)a, y = (uint64_t)b;
    switch (op->code) {
    case FTB_X_ADD: return ftb_extend(x + y, op->size);
    case FTB_X_SUB: return ftb_extend(x - y, op->size);
    case FTB_X_MUL: return ftb_extend(x * y, op->size);
    case FTB_X_DIV: return ftb_extend((uint64_t)divide(a, b, op->size), op->size);
    case FTB_X_MOD: return ftb_extend((uint64_t)modulo(a, b, op->size), op->size);
    case FTB_X_AND: return (int64_t)(x & y);
    case FTB_X_OR: return (int64_t)(x | y);
    case FTB_X_XOR: return (int64_t)(x ^ y);
    default: return ftb_extend((uint64_t)shift(a, b, op), op->size);
    }
}

static bool less(const ftb_insn *op, int64_t a, int64_t b)
{
    return op->size & FTB_SIZE_SIGNED ? a < b : (uint64_t)a < (uint64_t)b;
}

static int64_t compare(const ftb_insn *op, int64_t a, int64_t b)
{
    switch (op->code) {
    case FTB_X_EQ: return a == b;
    case FTB_X_NE: return a != b;
    case FTB_X_LT: return less(op, a, b);
    case FTB_X_LE: return !less(op, b, a);
    case FTB_X_GT: return less(op, b, a);
    default: return !less(op, a, b);
    }
}

static int64_t unary(const ftb_insn *op, int64_t a)
{
    switch (op->code) {
    case FTB_X_CONV: return ftb_extend((uint64_t)a, op->size);
    case FTB_X_NEG: return ftb_extend(0 - (uint64_t)a, op->size);
    case FTB_X_NOT: return ftb_extend(~(uint64_t)a, op->size);
    case FTB_X_LNOT: return a == 0;
    default: break;
    }
    switch (op->size) { /* SWAP */
    case 2: return __builtin_bswap16((uint16_t)a);
    case 4: return __builtin_bswap32((uint32_t)a);
    case 8: return (int64_t)__builtin_bswap64((uint64_t)a);
    default: return a;
    }
}

static int64_t pseudo(const ftb_text_context *context, uint32_t which)
{
    switch (which) {
    case FTB_PSEUDO_CPU: return context->cpu;
    case FTB_PSEUDO_PID: return context->pid;
    default: return context->ts;
    }
}

static bool same_text(ftb_mem mem, const uint8_t *text, uint64_t size)
{
    return ftb_string_size(mem) == size && (size == 0 || memcmp(mem.data, text, size) == 0);
}

/* The record's mask against the program's: bits beyond either's end are 0. */
static bool mask_matches(const ftb_vm *vm, const ftb_insn *op, ftb_mem mem)
{
    const uint8_t *wanted = vm->program->pool + op->arg; /* bit i is bit i % 8 of byte i / 8 */
    uint64_t bytes = op->imm > mem.size ? op->imm : mem.size;
    bool any = false, equal = true;
    for (uint64_t i = 0; i < bytes * 8; i++) {
        bool a = i < (uint64_t)mem.size * 8 && ftb_bit(vm->program, mem, (uint32_t)i);
        bool b = i / 8 < op->imm && wanted[i / 8] >> (i % 8) & 1;
        any |= a && b;
        equal &= a == b;
    }
    return op->size == FTB_MASK_ANY ? any : equal == (op->size == FTB_MASK_EQUAL);
}

/* One step a byte through the automaton of ftbuf/regex.py: u16 states, classes, start, 0; u8 class[256]; u16 next[state][class + 1],
 * whose last column is the end of the text. States 0 (no) and 1 (yes) are never left. */
static bool regex_matches(const uint8_t *automaton, ftb_mem mem)
{
    const uint8_t *class_of = automaton + FTB_REGEX_CLASSES, *next = class_of + 256;
    size_t columns = ftb_load16(automaton + 2, 0) + (size_t)1;
    uint32_t size = ftb_string_size(mem), state = ftb_load16(automaton + 4, 0);
    for (uint32_t i = 0; i < size && state > 1; i++)
        state = ftb_load16(next + 2 * (state * columns + class_of[mem.data[i]]), 0);
    if (state > 1)
        state = ftb_load16(next + 2 * (state * columns + columns - 1), 0);
    return state == 1;
}

static bool in_ranges(const uint8_t *ranges, uint64_t count, uint64_t value)
{
    uint64_t low = 0, high = count;
    while (low < high) {
        uint64_t middle = low + (high - low) / 2, range[2];
        memcpy(range, ranges + 16 * middle, sizeof range);
        if (value < range[0])
            high = middle;
        else if (value > range[1])
            low = middle + 1;
        else
            return true;
    }
    return false;
}

static int64_t test_mem(const ftb_vm *vm, const ftb_insn *op, ftb_mem mem)
{
    const uint8_t *text = vm->program->pool + op->arg;
    switch (op->code) {
    case FTB_X_MLEN: return mem.size;
    case FTB_X_STREQ: return same_text(mem, text, op->imm);
    case FTB_X_REGEX: return regex_matches(text, mem);
    case FTB_X_GLOB: return ftb_glob((const char *)text, (uint32_t)op->imm, (const char *)mem.data, ftb_string_size(mem));
    default: return mask_matches(vm, op, mem);
    }
}

static int load_mem(ftb_vm *vm, const ftb_insn *op, ftb_mem *mem)
{
    switch (op->code) {
    case FTB_X_MFIELD:
        if (op->arg > vm->size || op->imm > vm->size - op->arg)
            return FTB_RECORD_SHORT;
        *mem = (ftb_mem){vm->record + op->arg, (uint32_t)op->imm};
        return FTB_OK;
    case FTB_X_MTAIL:
        if (op->arg > vm->size)
            return FTB_RECORD_SHORT;
        *mem = (ftb_mem){vm->record + op->arg, (uint32_t)(vm->size - op->arg)};
        if (op->imm != 0 && op->imm < mem->size)
            mem->size = (uint32_t)op->imm;
        return FTB_OK;
    case FTB_X_MPOOL:
        *mem = (ftb_mem){vm->program->pool + op->arg, (uint32_t)op->imm};
        return FTB_OK;
    case FTB_X_MCOMM:
        *mem = vm->context->comm != NULL ? (ftb_mem){(const uint8_t *)vm->context->comm, vm->context->comm_size}
                                         : (ftb_mem){(const uint8_t *)"", 0};
        return FTB_OK;
    case FTB_X_ARGMEM:
        return next_string(vm, mem);
    default:
        return dynamic_mem(vm, op, mem);
    }
}

static void emit_string(const ftb_vm *vm, const ftb_insn *op, ftb_mem mem, int64_t width, int64_t precision)
{
    uint32_t n = ftb_string_size(mem);
    bool left = FTB_SPEC_FLAGS(op->imm) & FTB_SPEC_LEFT || width < 0;
    if (precision >= 0 && precision < n)
        n = (uint32_t)precision;
    if (width < 0)
        width = -width;
    ftb_put_padded(vm->out, (const char *)mem.data, n, width > FTB_WIDTH_MAX ? FTB_WIDTH_MAX : (int)width, left);
}

static void emit_plain_string(const ftb_vm *vm, const ftb_insn *op, ftb_mem mem)
{
    if ((op->imm & UINT64_C(0xffffffff)) == 0) /* neither width nor precision */
        ftb_put(vm->out, (const char *)mem.data, ftb_string_size(mem));
    else
        emit_string(vm, op, mem, FTB_SPEC_WIDTH(op->imm), FTB_SPEC_PRECISION(op->imm));
}

/* Whether a spec is of decimal or hexadecimal digits and nothing else; a sign is for decimal ones. */
static bool is_plain(unsigned size, uint64_t spec)
{
    uint64_t plain = FTB_SPEC_OF_INT(spec) & ~((uint64_t)FTB_SPEC_KERNEL << 32);
    return plain == (uint64_t)10 << 40 || (plain == (uint64_t)16 << 40 && !(size & FTB_SIZE_SIGNED));
}

FTB_ALWAYS_INLINE char *plain_integer(char *p, unsigned size, unsigned base, int64_t value)
{
    if (base == 16)
        return ftb_hex(p, (uint64_t)value);
    return size & FTB_SIZE_SIGNED ? ftb_signed(p, value) : ftb_decimal(p, (uint64_t)value);
}

/* A value as an integer of a size; the spec's own size is not looked at. */
static void emit_integer(const ftb_vm *vm, unsigned size, uint64_t spec, int64_t value)
{
    if (is_plain(size, spec)) {
        char *p = ftb_room(vm->out, FTB_NUMBER_ROOM);
        if (FTB_LIKELY(p != NULL))
            vm->out->len += (size_t)(plain_integer(p, size, FTB_SPEC_BASE(spec), ftb_extend((uint64_t)value, size)) - p);
    } else {
        ftb_put_number(vm->out, spec, ftb_extend((uint64_t)value, size), size & FTB_SIZE_SIGNED, FTB_SPEC_WIDTH(spec),
                       FTB_SPEC_PRECISION(spec));
    }
}

FTB_ALWAYS_INLINE int load_field(const ftb_vm *vm, uint32_t offset, unsigned size, int64_t *value)
{
    unsigned bytes = size & ~(unsigned)FTB_SIZE_SIGNED;
    if (FTB_UNLIKELY(bytes > vm->size || offset > vm->size - bytes))
        return FTB_RECORD_SHORT;
    if (bytes == 8)
        *value = (int64_t)ftb_load64(vm->record + offset, vm->program->big_endian);
    else
        *value = ftb_extend(ftb_load(vm->record + offset, bytes, vm->program->big_endian), size);
    return FTB_OK;
}

static int bounded(int64_t value)
{
    return value > FTB_WIDTH_MAX ? FTB_WIDTH_MAX : value < -FTB_WIDTH_MAX ? -FTB_WIDTH_MAX : (int)value;
}

/* A conversion whose width or precision came from the record: arguments are width, precision, value. */
static void emit_integer_x(const ftb_vm *vm, const ftb_insn *op, const int64_t *arguments)
{
    uint64_t spec = op->imm;
    int width = bounded(arguments[0]), precision = bounded(arguments[1]);
    if (width < 0) {
        spec |= (uint64_t)FTB_SPEC_LEFT << 32;
        width = -width;
    }
    ftb_put_number(vm->out, spec, ftb_extend((uint64_t)arguments[2], op->size), op->size & FTB_SIZE_SIGNED, width,
                   precision < 0 ? -1 : precision);
}

static int emit_printk(const ftb_vm *vm, ftb_mem arguments, uint64_t format)
{
    const ftb_printk *table = vm->context->printk;
    uint32_t index = table != NULL ? ftb_find_address(table->addresses, table->count, format) : 0;
    if (vm->nesting > 0 || table == NULL || index == table->count) {
        FTB_PUTS(vm->out, "[UNKNOWN FORMAT 0x");
        ftb_put_hex(vm->out, format, 1, false);
        ftb_put_char(vm->out, ']');
        return FTB_OK;
    }
    ftb_vm inner = {.program = table->programs[index], .context = vm->context, .record = arguments.data,
                    .size = arguments.size, .out = vm->out, .begin = vm->out->len, .nesting = 1};
    return inner.program->result ? FTB_BAD_PLAN : ftb_run(&inner, NULL);
}

static int emit_field(const ftb_vm *vm, const ftb_insn *op)
{
    int64_t value;
    int status = load_field(vm, op->arg, op->size, &value);
    if (status == FTB_OK)
        emit_integer(vm, FTB_SPEC_SIZE(op->imm), op->imm, value);
    return status;
}

/* Operations that write text; `ints` and `mem` are their operands. */
static int emit(const ftb_vm *vm, const ftb_insn *op, const int64_t *ints, ftb_mem mem)
{
    switch (op->code) {
    case FTB_X_PAD:
        ftb_pad_since(vm->out, (size_t)ints[0], bounded(ints[1] < 0 ? -ints[1] : ints[1]), bounded(ints[2]),
                      FTB_SPEC_FLAGS(op->imm) & FTB_SPEC_LEFT || ints[1] < 0);
        break;
    case FTB_X_INT: emit_integer(vm, op->size, op->imm, ints[0]); break;
    case FTB_X_FINT: return emit_field(vm, op);
    case FTB_X_INTX: emit_integer_x(vm, op, ints); break;
    case FTB_X_CHAR: {
        char c = (char)ints[0];
        ftb_put_padded(vm->out, &c, 1, FTB_SPEC_WIDTH(op->imm), FTB_SPEC_FLAGS(op->imm) & FTB_SPEC_LEFT);
        break;
    }
    case FTB_X_STRX: emit_string(vm, op, mem, bounded(ints[0]), bounded(ints[1])); break;
    case FTB_X_PSTR: ftb_emit_pointer_string(vm, op, (uint64_t)ints[0]); break;
    case FTB_X_FLAGS: ftb_emit_flags(vm, op, (uint64_t)ints[0]); break;
    case FTB_X_SYMBOLIC: ftb_emit_symbolic(vm, op, (uint64_t)ints[0]); break;
    case FTB_X_HEX: ftb_emit_hex(vm, op, mem, ints[0]); break;
    case FTB_X_ARRAY: ftb_emit_array(vm, op, mem, ints[0], ints[1]); break;
    case FTB_X_HEXDUMP: ftb_emit_hexdump(vm, op, mem, ints); break;
    case FTB_X_BITS: ftb_emit_bits(vm, op, mem, ints[0]); break;
    case FTB_X_MAC: ftb_emit_mac(vm, op, mem); break;
    case FTB_X_IP4: ftb_emit_ip4(vm, op, mem); break;
    case FTB_X_IP6: ftb_emit_ip6(vm, op, mem); break;
    case FTB_X_SOCKADDR: ftb_emit_sockaddr(vm, op, mem); break;
    case FTB_X_UUID: ftb_emit_uuid(vm, op, mem); break;
    case FTB_X_FOURCC: ftb_emit_fourcc(vm, mem); break;
    case FTB_X_ESCAPED: ftb_emit_escaped(vm, mem); break;
    case FTB_X_OPAQUE: ftb_emit_opaque(vm, op, mem); break;
    case FTB_X_CDB: ftb_emit_cdb(vm, mem, ints[0]); break;
    case FTB_X_STACK: ftb_emit_stack(vm, op, mem, ints[0]); break;
    case FTB_X_CALLS: ftb_emit_calls(vm, (uint64_t)ints[0], (uint64_t)ints[1]); break;
    case FTB_X_BPRINT: return emit_printk(vm, mem, (uint64_t)ints[0]);
    default: break;
    }
    return FTB_OK;
}

/* Room for n more bytes behind p, or NULL. */
static char *more_room(ftb_text *out, char *p, size_t n)
{
    out->len = (size_t)(p - out->data);
    return ftb_room(out, n);
}

FTB_ALWAYS_INLINE char *put_text(char *p, const ftb_program *program, const ftb_insn *op)
{
    memcpy(p, program->pool + op->arg, FTB_SLACK);
    if (FTB_UNLIKELY(op->imm > FTB_SLACK))
        memcpy(p, program->pool + op->arg, op->imm);
    return p + op->imm;
}

/* A text and a field. */
FTB_ALWAYS_INLINE int put_labelled(char **p, const ftb_vm *vm, const ftb_insn *op)
{
    int64_t value;
    unsigned size = FTB_SPEC_SIZE(op->imm);
    int status = load_field(vm, FTB_TFINT_FIELD(op->imm), op->size, &value);
    if (FTB_UNLIKELY(status != FTB_OK))
        return status;
    memcpy(*p, vm->program->pool + op->arg, FTB_SLACK);
    if (size != op->size)
        value = ftb_extend((uint64_t)value, size);
    *p = plain_integer(*p + FTB_TFINT_TEXT(op->imm), size, FTB_SPEC_BASE(op->imm), value);
    return FTB_OK;
}

/* ftb_run keeps in p where the text ends, as far as `end`, and tells out only where others write: here is room for n bytes. */
#define ROOM(n)                                               \
    if (FTB_UNLIKELY((size_t)(end - p) < (n))) {              \
        if ((p = more_room(out, p, (n))) == NULL)             \
            return FTB_NO_MEMORY;                             \
        end = out->data + out->cap;                           \
    }

/* Others write: they learn where the text ends, and where it ends then is learned from them. */
#define BY_OTHERS(call)                       \
    out->len = (size_t)(p - out->data);       \
    call;                                     \
    p = out->data + out->len;                 \
    end = out->data + out->cap;

int ftb_run(ftb_vm *vm, int64_t *value)
{
    int64_t stack[FTB_INT_STACK], locals[FTB_LOCALS];
    ftb_mem mems[FTB_MEM_STACK];
    int64_t *top = stack; /* one past the last integer */
    ftb_mem *mem = mems;  /* one past the last mem */
    int status;
    const ftb_insn *ops = vm->program->ops;
    ftb_text *out = vm->out;
    char *p = NULL, *end = NULL; /* of what can be written */
    if (vm->program->has_locals)
        memset(locals, 0, sizeof locals);
    if (vm->program->emits) {
        p = ftb_room(out, FTB_SLACK);
        if (p == NULL)
            return FTB_NO_MEMORY;
        end = out->data + out->cap;
    }
    for (const ftb_insn *op = ops;; op++) {
        switch (op->code) {
        case FTB_X_END:
            if (value != NULL)
                *value = top[-1];
            if (p != NULL)
                out->len = (size_t)(p - out->data);
            return FTB_OK;
        case FTB_X_PUSH: *top++ = (int64_t)op->imm; break;
        case FTB_X_FIELD:
            if (FTB_UNLIKELY((status = load_field(vm, op->arg, op->size, top)) != FTB_OK))
                return status;
            top++;
            break;
        case FTB_X_CONTEXT: *top++ = pseudo(vm->context, op->arg); break;
        case FTB_X_DYNLEN: {
            ftb_mem found;
            if ((status = dynamic_mem(vm, op, &found)) != FTB_OK)
                return status;
            *top++ = found.size;
            break;
        }
        case FTB_X_CONV: case FTB_X_NEG: case FTB_X_NOT: case FTB_X_LNOT: case FTB_X_SWAP:
            top[-1] = unary(op, top[-1]);
            break;
        case FTB_X_ADD: case FTB_X_SUB: case FTB_X_MUL: case FTB_X_DIV: case FTB_X_MOD: case FTB_X_SHL: case FTB_X_SHR:
        case FTB_X_AND: case FTB_X_OR: case FTB_X_XOR:
            top--;
            top[-1] = arithmetic(op, top[-1], top[0]);
            break;
        case FTB_X_EQ: case FTB_X_NE: case FTB_X_LT: case FTB_X_LE: case FTB_X_GT: case FTB_X_GE:
            top--;
            top[-1] = compare(op, top[-1], top[0]);
            break;
        case FTB_X_JUMP: op = ops + op->arg - 1; break;
        case FTB_X_JZ:
            if (*--top == 0)
                op = ops + op->arg - 1;
            break;
        case FTB_X_JNZ:
            if (*--top != 0)
                op = ops + op->arg - 1;
            break;
        case FTB_X_DUP: top[0] = top[-1]; top++; break;
        case FTB_X_POP: top--; break;
        case FTB_X_SET: locals[op->arg] = *--top; break;
        case FTB_X_GET: *top++ = locals[op->arg]; break;
        case FTB_X_ARG:
            if ((status = next_argument(vm, op->size, top)) != FTB_OK)
                return status;
            top++;
            break;
        case FTB_X_ARGMEM: case FTB_X_MFIELD: case FTB_X_MDYN: case FTB_X_MTAIL: case FTB_X_MPOOL: case FTB_X_MCOMM:
            if (FTB_UNLIKELY((status = load_mem(vm, op, mem)) != FTB_OK))
                return status;
            mem++;
            break;
        case FTB_X_MCOMMOF: *mem++ = ftb_comm_of(vm->context, *--top); break;
        case FTB_X_MLOOKUP: *mem++ = ftb_kernel_string(vm->context, (uint64_t)*--top); break;
        case FTB_X_MSKIP: {
            uint64_t skip = (uint64_t)*--top;
            if (skip > mem[-1].size)
                skip = mem[-1].size;
            mem[-1] = (ftb_mem){mem[-1].data + skip, mem[-1].size - (uint32_t)skip};
            break;
        }
        case FTB_X_MDROP: mem--; break;
        case FTB_X_INDEX:
            mem--;
            top[-1] = element_at(vm, *mem, top[-1], op->size);
            break;
        case FTB_X_IN: top[-1] = in_ranges(vm->program->pool + op->arg, op->imm, (uint64_t)top[-1]); break;
        case FTB_X_MLEN: case FTB_X_STREQ: case FTB_X_GLOB: case FTB_X_MASK: case FTB_X_REGEX:
            mem--;
            *top++ = test_mem(vm, op, *mem);
            break;
        case FTB_X_TEXT:
            ROOM(op->imm + FTB_SLACK)
            p = put_text(p, vm->program, op);
            break;
        case FTB_X_TFINT:
            ROOM(FTB_SLACK + FTB_NUMBER_ROOM)
            if (FTB_UNLIKELY((status = put_labelled(&p, vm, op)) != FTB_OK))
                return status;
            break;
        case FTB_X_CHOMP: p -= p > out->data + vm->begin && p[-1] == '\n'; break;
        case FTB_X_MARK: *top++ = (int64_t)(p - out->data); break;
        case FTB_X_SYM: BY_OTHERS(ftb_emit_symbol(vm, op->arg, (uint64_t)*--top)) break;
        case FTB_X_PTR: BY_OTHERS(ftb_emit_pointer(vm, op, (uint64_t)*--top)) break;
        case FTB_X_STR: BY_OTHERS(emit_plain_string(vm, op, *--mem)) break;
        default:
            top -= ftb_effects[op->code].ipop;
            mem -= ftb_effects[op->code].mpop;
            BY_OTHERS(status = emit(vm, op, top, ftb_effects[op->code].mpop ? *mem : (ftb_mem){NULL, 0}))
            if (FTB_UNLIKELY(status != FTB_OK))
                return status;
            break;
        }
    }
}

int ftb_render_body(const ftb_program *program, const ftb_text_context *context, const uint8_t *payload, size_t size, ftb_text *out)
{
    size_t before = out->len;
    ftb_vm vm = {.program = program, .context = context, .record = payload, .size = size, .out = out, .begin = before};
    if (program->result || size > UINT32_MAX)
        return FTB_BAD_PLAN;
    int status = ftb_run(&vm, NULL);
    if (status == FTB_OK)
        status = out->status;
    if (status != FTB_OK)
        out->len = before;
    return status;
}

int ftb_eval(const ftb_program *program, const ftb_text_context *context, const uint8_t *payload, size_t size, int64_t *value)
{
    ftb_vm vm = {.program = program, .context = context, .record = payload, .size = size};
    if (program->emits || !program->result || size > UINT32_MAX)
        return FTB_BAD_PLAN;
    return ftb_run(&vm, value);
}
