/* Verifies a block of bytecode: after this, the evaluator checks only what depends on the record. */
#include "ftb_emit.h"

const ftb_effect ftb_effects[FTB_X_COUNT] = {
#define FTB_X_EFFECT(name, ipop, ipush, mpop, mpush) [FTB_X_##name] = {ipop, ipush, mpop, mpush},
    FTB_INSNS(FTB_X_EFFECT)
#undef FTB_X_EFFECT
};

static bool in_pool(const ftb_program *p, uint64_t offset, uint64_t size)
{
    return offset <= p->pool_size && size <= p->pool_size - offset;
}

/* A table of FLAGS or SYMBOLIC: u32 rows, u32 ordered, rows of u64 value, u32 offset, u32 size. */
static bool table_is_valid(const ftb_program *p, uint32_t offset)
{
    uint32_t rows;
    if (!in_pool(p, offset, 8))
        return false;
    memcpy(&rows, p->pool + offset, 4);
    if (!in_pool(p, (uint64_t)offset + 8, (uint64_t)rows * 16))
        return false;
    for (uint32_t i = 0; i < rows; i++) {
        uint32_t where[2];
        memcpy(where, p->pool + offset + 8 + 16 * (size_t)i + 8, sizeof where);
        if (!in_pool(p, where[0], where[1]))
            return false;
    }
    return true;
}

/* An automaton of REGEX (see ftb_expr.c regex_matches): every class and every state that it names is there. */
static bool regex_is_valid(const ftb_program *p, uint32_t offset, uint64_t size)
{
    const uint8_t *automaton = p->pool + offset, *class_of = automaton + FTB_REGEX_CLASSES, *next = class_of + 256;
    if (!in_pool(p, offset, size) || size < FTB_REGEX_CLASSES + 256)
        return false;
    size_t states = ftb_load16(automaton, 0), classes = ftb_load16(automaton + 2, 0);
    if (states < 2 || ftb_load16(automaton + 4, 0) >= states || size != FTB_REGEX_CLASSES + 256 + 2 * states * (classes + 1))
        return false;
    for (size_t i = 0; i < 256; i++)
        if (class_of[i] >= classes)
            return false;
    for (size_t i = 0; i < states * (classes + 1); i++)
        if (ftb_load16(next + 2 * i, 0) >= states)
            return false;
    return true;
}

static bool size_is_integer(unsigned size)
{
    size &= ~FTB_SIZE_SIGNED;
    return size == 1 || size == 2 || size == 4 || size == 8;
}

static bool jump_is_valid(const ftb_program *p, uint32_t index)
{
    const ftb_insn *op = p->ops + index;
    if (op->arg <= index || op->arg >= p->op_count)
        return false;
    const ftb_insn *target = p->ops + op->arg;
    return target->depth == op->depth - ftb_effects[op->code].ipop && target->mem_depth == op->mem_depth;
}

static bool operand_is_valid(const ftb_program *p, uint32_t index)
{
    const ftb_insn *op = p->ops + index;
    if (op->code >= FTB_X_CONV && op->code <= FTB_X_GE) /* shifts and extensions rely on it */
        return size_is_integer(op->size);
    switch (op->code) {
    case FTB_X_FIELD:
    case FTB_X_ARG:
    case FTB_X_INDEX:
    case FTB_X_INT:
    case FTB_X_INTX:
    case FTB_X_SYMBOLIC:
    case FTB_X_FLAGS:
        if (!size_is_integer(op->size))
            return false;
        if (op->code == FTB_X_FLAGS && !in_pool(p, (uint32_t)op->imm, op->imm >> 32))
            return false;
        return (op->code != FTB_X_FLAGS && op->code != FTB_X_SYMBOLIC) || table_is_valid(p, op->arg);
    case FTB_X_FINT:
        return size_is_integer(op->size) && size_is_integer(FTB_SPEC_SIZE(op->imm));
    case FTB_X_TFINT:
        return size_is_integer(op->size) && size_is_integer(FTB_SPEC_SIZE(op->imm)) && FTB_TFINT_TEXT(op->imm) <= FTB_SLACK &&
               in_pool(p, op->arg, FTB_SLACK);
    case FTB_X_DYNLEN:
        return op->size == FTB_WHERE_DATA_LOC || op->size == FTB_WHERE_REL_LOC;
    case FTB_X_MDYN:
        return op->size >= FTB_WHERE_DATA_LOC && op->size <= FTB_WHERE_SHORT_LOC;
    case FTB_X_CONTEXT:
        return op->arg < FTB_PSEUDO_COUNT;
    case FTB_X_SET:
    case FTB_X_GET:
        return op->arg < FTB_LOCALS;
    case FTB_X_JUMP:
    case FTB_X_JZ:
    case FTB_X_JNZ:
        return jump_is_valid(p, index);
    case FTB_X_MFIELD:
        return op->imm <= UINT32_MAX;
    case FTB_X_MASK:
        return op->size < FTB_MASK_COUNT && in_pool(p, op->arg, op->imm);
    case FTB_X_REGEX:
        return regex_is_valid(p, op->arg, op->imm);
    case FTB_X_IN:
        return op->imm <= p->pool_size / 16 && in_pool(p, op->arg, 16 * op->imm);
    case FTB_X_MPOOL:
    case FTB_X_STREQ:
    case FTB_X_GLOB:
    case FTB_X_HEXDUMP:
        return in_pool(p, op->arg, op->imm);
    case FTB_X_TEXT:
        return in_pool(p, op->arg, op->imm > FTB_SLACK ? op->imm : FTB_SLACK);
    case FTB_X_PTR:
    case FTB_X_PSTR:
        return op->arg < FTB_POINTER_COUNT;
    case FTB_X_STACK:
        return op->arg < FTB_STACK_COUNT;
    default:
        return true;
    }
}

static bool ops_are_valid(ftb_program *p)
{
    unsigned depth = 0, mem_depth = 0;
    bool reached = true; /* from the operation before */
    for (uint32_t i = 0; i < p->op_count; i++) {
        const ftb_insn *op = p->ops + i;
        if (op->code >= FTB_X_COUNT || (reached && (op->depth != depth || op->mem_depth != mem_depth)))
            return false;
        depth = op->depth;
        mem_depth = op->mem_depth;
        if (ftb_effects[op->code].ipop > depth || ftb_effects[op->code].mpop > mem_depth)
            return false;
        depth = depth - ftb_effects[op->code].ipop + ftb_effects[op->code].ipush;
        mem_depth = mem_depth - ftb_effects[op->code].mpop + ftb_effects[op->code].mpush;
        if (depth > FTB_INT_STACK || mem_depth > FTB_MEM_STACK || !operand_is_valid(p, i))
            return false;
        p->emits |= op->code >= FTB_X_TEXT;
        p->has_locals |= op->code == FTB_X_SET || op->code == FTB_X_GET;
        if ((op->code == FTB_X_END) != (i == p->op_count - 1))
            return false;
        reached = op->code != FTB_X_JUMP;
    }
    p->result = depth == 1;
    return depth <= 1 && mem_depth == 0;
}

int ftb_program_open(const void *block, size_t size, ftb_program *program)
{
    ftb_program_header header;
    *program = (ftb_program){0};
    if (block == NULL || (uintptr_t)block % 8 != 0 || size < sizeof header)
        return FTB_BAD_PLAN;
    memcpy(&header, block, sizeof header);
    size_t left = size - sizeof header;
    if (header.magic != FTB_PROGRAM_MAGIC || header.op_count == 0 || header.op_count > left / sizeof(ftb_insn) ||
        left - header.op_count * sizeof(ftb_insn) != header.pool_size || (header.long_size != 4 && header.long_size != 8))
        return FTB_BAD_PLAN;
    ftb_program opened = {
        .ops = (const ftb_insn *)((const char *)block + sizeof header),
        .op_count = header.op_count,
        .pool_size = header.pool_size,
        .big_endian = header.big_endian != 0,
        .long_size = header.long_size,
    };
    opened.pool = (const uint8_t *)(opened.ops + header.op_count);
    if (!ops_are_valid(&opened))
        return FTB_BAD_PLAN;
    *program = opened;
    return FTB_OK;
}
