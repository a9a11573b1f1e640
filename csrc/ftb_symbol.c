/* Kernel addresses as text: symbols, strings of the kernel, raw pointers, stacks. */
#include "ftb_emit.h"

#define NO_ADDRESS UINT64_MAX

/* How many addresses are <= address. */
static uint32_t upper_bound(const uint64_t *addresses, uint32_t count, uint64_t address)
{
    if (count == 0)
        return 0;
    const uint64_t *base = addresses;
    uint32_t left = count;
    while (left > 1) { /* without a branch on the comparison: it would be mispredicted half of the time */
        uint32_t half = left / 2;
        base = base[half] <= address ? base + half : base;
        left -= half;
    }
    return (uint32_t)(base - addresses) + (*base <= address);
}

uint32_t ftb_find_address(const uint64_t *addresses, uint32_t count, uint64_t address)
{
    uint32_t index = upper_bound(addresses, count, address);
    return index > 0 && addresses[index - 1] == address ? index - 1 : count;
}

ftb_mem ftb_kernel_string(const ftb_text_context *context, uint64_t address)
{
    const ftb_strings *strings = context->strings;
    ftb_mem none = {(const uint8_t *)"", 0};
    if (strings == NULL)
        return none;
    uint32_t index = ftb_find_address(strings->addresses, strings->count, address);
    if (index == strings->count)
        return none;
    uint32_t start = strings->offsets[index], end = strings->offsets[index + 1];
    if (start > end || end > strings->texts_size)
        return none;
    return (ftb_mem){(const uint8_t *)strings->texts + start, end - start};
}

ftb_mem ftb_comm_of(const ftb_text_context *context, int64_t pid)
{
    static const char idle[] = "<idle>", unknown[] = "<...>", negative[] = "<XXX>"; /* K:trace.c __trace_find_cmdline */
    const ftb_tasks *comms = context->comms;
    if (pid == 0)
        return (ftb_mem){(const uint8_t *)idle, sizeof idle - 1};
    if (pid < 0)
        return (ftb_mem){(const uint8_t *)negative, sizeof negative - 1};
    uint32_t low = 0, high = comms != NULL ? comms->count : 0;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (comms->pids[middle] < pid)
            low = middle + 1;
        else
            high = middle;
    }
    if (comms == NULL || low == comms->count || comms->pids[low] != pid || comms->offsets[low] > comms->offsets[low + 1] ||
        comms->offsets[low + 1] > comms->texts_size)
        return (ftb_mem){(const uint8_t *)unknown, sizeof unknown - 1};
    return (ftb_mem){(const uint8_t *)comms->texts + comms->offsets[low], comms->offsets[low + 1] - comms->offsets[low]};
}

void ftb_symbol_cache_reset(ftb_symbol_cache *cache)
{
    for (size_t i = 0; i < FTB_SYMBOL_CACHE; i++)
        cache->hits[i] = (struct ftb_symbol_hit){.address = NO_ADDRESS, .name = FTB_NO_SYMBOL};
}

static uint32_t hash_of(const char *name, uint32_t size)
{
    uint32_t hash = 2166136261u; /* FNV-1a */
    for (uint32_t i = 0; i < size; i++)
        hash = (hash ^ (uint8_t)name[i]) * 16777619u;
    return hash;
}

static void look_up(const ftb_symbols *symbols, uint64_t address, struct ftb_symbol_hit *hit)
{
    *hit = (struct ftb_symbol_hit){.address = address, .name = FTB_NO_SYMBOL};
    uint32_t row = symbols != NULL ? upper_bound(symbols->addresses, symbols->count, address) : 0;
    if (row-- == 0)
        return;
    bool exact = symbols->addresses[row] == address;
    if (!exact && address >= symbols->ends[row])
        return;
    uint32_t at = exact ? symbols->exact[row] : symbols->names[row];
    const char *name = symbols->texts + at;
    const char *end = at < symbols->texts_size ? memchr(name, 0, symbols->texts_size - at) : NULL;
    if (end == NULL)
        return;
    hit->start = symbols->addresses[row];
    hit->row = row;
    hit->name = at;
    hit->name_size = (uint32_t)(end - name);
    hit->name_hash = hash_of(name, hit->name_size);
}

const struct ftb_symbol_hit *ftb_symbol_find(const ftb_text_context *context, uint64_t address, struct ftb_symbol_hit *scratch)
{
    ftb_symbol_cache *cache = context->cache;
    struct ftb_symbol_hit *hit = scratch;
    if (cache != NULL && address != NO_ADDRESS) {
        uint64_t hash = address * UINT64_C(0x9e3779b97f4a7c15);
        hit = &cache->hits[hash >> (64 - FTB_SYMBOL_CACHE_BITS)];
        if (FTB_LIKELY(hit->address == address))
            return hit;
    }
    look_up(context->symbols, address, hit);
    return hit;
}

static void put_address(const ftb_vm *vm, uint64_t address)
{
    FTB_PUTS(vm->out, " <");
    ftb_put_hex(vm->out, address, 2 * vm->program->long_size, false);
    ftb_put_char(vm->out, '>');
}

static const char *name_of(const ftb_vm *vm, const struct ftb_symbol_hit *hit)
{
    return hit->name != FTB_NO_SYMBOL ? vm->context->symbols->texts + hit->name : NULL;
}

/* Room for what is put without asking again: "0x" or a separator, a number, a sign or two. */
#define PIECE_ROOM (FTB_NUMBER_ROOM + 8)

FTB_ALWAYS_INLINE char *put_after(char *p, const char *three, uint64_t value)
{
    memcpy(p, three, 3);
    return ftb_hex(p + 3, value);
}

/* " [module]", whose name stands behind the symbol's. */
static void put_module(const ftb_vm *vm, const struct ftb_symbol_hit *hit)
{
    const ftb_symbols *symbols = vm->context->symbols;
    const char *module = name_of(vm, hit) + hit->name_size + 1, *end = symbols->texts + symbols->texts_size;
    ftb_mem text = {(const uint8_t *)module, module < end ? (uint32_t)(end - module) : 0};
    uint32_t size = ftb_string_size(text);
    if (size == 0 || size == text.size)
        return;
    FTB_PUTS(vm->out, " [");
    ftb_put(vm->out, module, size);
    ftb_put_char(vm->out, ']');
}

/* A symbol in one of its forms, but for its module and the address. */
static void put_symbol(const ftb_vm *vm, unsigned form, uint64_t address, const struct ftb_symbol_hit *hit)
{
    char *p = ftb_room(vm->out, (size_t)hit->name_size + 3 * PIECE_ROOM);
    if (FTB_UNLIKELY(p == NULL))
        return;
    if (form & FTB_SYM_PREFIX)
        *p++ = '(';
    ftb_copy(p, name_of(vm, hit), hit->name_size);
    p += hit->name_size;
    if (form & FTB_SYM_SLASH)
        p = put_after(p, "/0x", hit->start - address);
    else if (form & (FTB_SYM_OFFSET | FTB_SYM_PREFIX))
        p = put_after(p, "+0x", address - hit->start);
    if (form & FTB_SYM_SIZE)
        p = put_after(p, "/0x", vm->context->symbols->ends[hit->row] - hit->start);
    if (form & FTB_SYM_PREFIX) {
        memcpy(p, ") ", 2);
        p += 2;
    }
    vm->out->len = (size_t)(p - vm->out->data);
}

void ftb_emit_symbol(const ftb_vm *vm, unsigned form, uint64_t address)
{
    struct ftb_symbol_hit scratch;
    const struct ftb_symbol_hit *hit = ftb_symbol_find(vm->context, form & FTB_SYM_CALLER ? address - 1 : address, &scratch);
    if (hit->name != FTB_NO_SYMBOL) {
        put_symbol(vm, form, address, hit);
        if (form & FTB_SYM_MODULE)
            put_module(vm, hit);
    } else if (form & FTB_SYM_PREFIX) {
        return;
    } else {
        FTB_PUTS(vm->out, "0x");
        ftb_put_hex(vm->out, address, form & FTB_SYM_SLASH ? 8 : 1, false);
    }
    if (form & FTB_SYM_ADDRESS)
        put_address(vm, address);
}

void ftb_emit_pointer(const ftb_vm *vm, const ftb_insn *op, uint64_t value)
{
    if (vm->program->long_size == 4)
        value = (uint32_t)value;
    if (op->arg == FTB_POINTER_KERNEL) {
        ftb_put_hex(vm->out, value, 2 * vm->program->long_size, false);
    } else if (op->arg == FTB_POINTER_C && value == 0) {
        FTB_PUTS(vm->out, "(nil)");
    } else {
        char *p = ftb_room(vm->out, PIECE_ROOM);
        if (FTB_UNLIKELY(p == NULL))
            return;
        memcpy(p, "0x", 2);
        vm->out->len += (size_t)(ftb_hex(p + 2, value) - p);
    }
}

void ftb_emit_pointer_string(const ftb_vm *vm, const ftb_insn *op, uint64_t value)
{
    ftb_mem text = ftb_kernel_string(vm->context, value);
    if (text.size > 0)
        ftb_put(vm->out, (const char *)text.data, ftb_string_size(text));
    else if (value == 0)
        FTB_PUTS(vm->out, "(null)");
    else
        ftb_emit_pointer(vm, op, value);
}

/* Where a name stands in a chain, or its length: most names that differ do so in their hashes. */
static uint32_t place_in(const ftb_calls *chain, const char *name, uint32_t hash)
{
    uint32_t depth = 0;
    while (depth < chain->count && (chain->hashes[depth] != hash || (chain->names[depth] != name && strcmp(chain->names[depth], name) != 0)))
        depth++;
    return depth;
}

static void set_call(ftb_calls *chain, uint32_t depth, const char *name, uint32_t hash)
{
    chain->names[depth] = name;
    chain->hashes[depth] = hash;
    if (chain->count <= depth)
        chain->count = depth + 1;
}

/* Where the parent stands in the chain of this CPU, the function is one deeper; what is not known starts anew. */
void ftb_emit_calls(const ftb_vm *vm, uint64_t function, uint64_t parent)
{
    struct ftb_symbol_hit scratch;
    const ftb_text_context *context = vm->context;
    const struct ftb_symbol_hit *hit = ftb_symbol_find(context, parent, &scratch);
    const char *caller = name_of(vm, hit);
    uint32_t caller_hash = hit->name_hash;
    hit = ftb_symbol_find(context, function, &scratch);
    if (context->calls == NULL || context->cpu < 0 || (uint32_t)context->cpu >= context->n_calls || caller == NULL)
        return;
    ftb_calls *chain = &context->calls[context->cpu];
    uint32_t depth = place_in(chain, caller, caller_hash);
    if (depth == chain->count || depth == FTB_CALL_DEPTH - 1) {
        depth = 0;
        set_call(chain, 0, caller, caller_hash);
    }
    if (hit->name != FTB_NO_SYMBOL)
        set_call(chain, depth + 1, name_of(vm, hit), hit->name_hash);
    ftb_fill(vm->out, ' ', 3 * (size_t)depth);
}

static void put_stack_line(const ftb_vm *vm, uint64_t address)
{
    struct ftb_symbol_hit scratch;
    const struct ftb_symbol_hit *hit = ftb_symbol_find(vm->context, address, &scratch);
    FTB_PUTS(vm->out, "\n=> ");
    if (hit->name == FTB_NO_SYMBOL) {
        ftb_put_hex(vm->out, address, 1, false);
        return;
    }
    ftb_put(vm->out, name_of(vm, hit), hit->name_size);
    FTB_PUTS(vm->out, " (");
    ftb_put_hex(vm->out, address, 1, false);
    ftb_put_char(vm->out, ')');
}

/* K:trace_output.c trace_stack_print: "<stack trace>" and one " => symbol" a line. */
void ftb_emit_stack(const ftb_vm *vm, const ftb_insn *op, ftb_mem mem, int64_t entries)
{
    uint32_t word = vm->program->long_size, count = mem.size / word;
    uint64_t end = word == 8 ? UINT64_MAX : UINT32_MAX; /* older kernels end with all ones */
    if (entries >= 0 && (uint64_t)entries < count)
        count = (uint32_t)entries;
    for (uint32_t i = 0; i < count; i++) {
        uint64_t address = ftb_load(mem.data + (size_t)i * word, word, vm->program->big_endian);
        if (address == end || (op->arg == FTB_STACK_USER && address == 0))
            break;
        if (op->arg == FTB_STACK_TRACE_CMD) {
            put_stack_line(vm, address);
            continue;
        }
        ftb_put(vm->out, "\n => ", 5);
        if (op->arg == FTB_STACK_USER)
            put_address(vm, address);
        else if (address == INT32_MAX) /* K:trace_output.c FTRACE_TRAMPOLINE_MARKER */
            FTB_PUTS(vm->out, "[FTRACE TRAMPOLINE]");
        else
            ftb_emit_symbol(vm, op->imm & 0xff, address);
    }
}
