/* The %p conversions that show what a pointer points to (K:lib/vsprintf.c), and SCSI commands (K:drivers/scsi/scsi_trace.c). */
#include "ftb_emit.h"

static bool enough(const ftb_vm *vm, ftb_mem mem, uint32_t size)
{
    if (mem.size >= size)
        return true;
    FTB_PUTS(vm->out, "(efault)");
    return false;
}

static uint32_t be16(const uint8_t *p)
{
    return ftb_load16(p, 1);
}

void ftb_emit_mac(const ftb_vm *vm, const ftb_insn *op, ftb_mem mem)
{
    if (!enough(vm, mem, 6))
        return;
    for (int i = 0; i < 6; i++) {
        if (i > 0 && (op->arg & 0xff) != 0)
            ftb_put_char(vm->out, (char)op->arg);
        ftb_put_hex(vm->out, mem.data[op->arg & 0x100 ? 5 - i : i], 2, false);
    }
}

static void put_ip4(const ftb_vm *vm, const uint8_t *bytes, uint32_t form)
{
    for (int i = 0; i < 4; i++) {
        unsigned value = bytes[form & 2 ? 3 - i : i];
        if (i > 0)
            ftb_put_char(vm->out, '.');
        if (form & 1)
            ftb_fill(vm->out, '0', value < 10 ? 2 : value < 100);
        ftb_put_decimal(vm->out, value);
    }
}

void ftb_emit_ip4(const ftb_vm *vm, const ftb_insn *op, ftb_mem mem)
{
    if (enough(vm, mem, 4))
        put_ip4(vm, mem.data, op->arg);
}

static void put_ip6_full(const ftb_vm *vm, const uint8_t *bytes, bool colons)
{
    for (int i = 0; i < 8; i++) {
        if (i > 0 && colons)
            ftb_put_char(vm->out, ':');
        ftb_put_hex(vm->out, be16(bytes + 2 * i), 4, false);
    }
}

/* An IPv4 address inside: mapped (::ffff:a.b.c.d) or ISATAP. */
static bool ends_in_ip4(const uint8_t *bytes)
{
    static const uint8_t mapped[12] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
    return memcmp(bytes, mapped, 12) == 0 || ((bytes[8] | 2) == 2 && bytes[9] == 0 && bytes[10] == 0x5e && bytes[11] == 0xfe);
}

static void put_ip6_compressed(const ftb_vm *vm, const uint8_t *bytes)
{
    bool ip4 = ends_in_ip4(bytes), colon = false;
    int words = ip4 ? 6 : 8, best = -1, longest = 1;
    for (int i = 0; i < words; i++) {
        int n = 0;
        while (i + n < words && be16(bytes + 2 * (i + n)) == 0)
            n++;
        if (n > longest) {
            longest = n;
            best = i;
        }
    }
    for (int i = 0; i < words; i++) {
        if (i == best) {
            FTB_PUTS(vm->out, "::");
            i += longest - 1;
            colon = false;
            continue;
        }
        if (colon)
            ftb_put_char(vm->out, ':');
        ftb_put_hex(vm->out, be16(bytes + 2 * i), 1, false);
        colon = true;
    }
    if (ip4) {
        if (colon)
            ftb_put_char(vm->out, ':');
        put_ip4(vm, bytes + 12, 0);
    }
}

void ftb_emit_ip6(const ftb_vm *vm, const ftb_insn *op, ftb_mem mem)
{
    if (!enough(vm, mem, 16))
        return;
    if (op->arg == 2)
        put_ip6_compressed(vm, mem.data);
    else
        put_ip6_full(vm, mem.data, op->arg == 0);
}

static void put_sockaddr6(const ftb_vm *vm, ftb_mem mem, uint32_t form)
{
    bool more = form & (FTB_SA_PORT | FTB_SA_FLOW | FTB_SA_SCOPE);
    if (!enough(vm, mem, form & FTB_SA_SCOPE ? 28 : 24))
        return;
    if (more)
        ftb_put_char(vm->out, '[');
    if (form & FTB_SA_COMPRESSED)
        put_ip6_compressed(vm, mem.data + 8);
    else
        put_ip6_full(vm, mem.data + 8, true);
    if (more)
        ftb_put_char(vm->out, ']');
    if (form & FTB_SA_PORT) {
        ftb_put_char(vm->out, ':');
        ftb_put_decimal(vm->out, be16(mem.data + 2));
    }
    if (form & FTB_SA_FLOW) {
        ftb_put_char(vm->out, '/');
        ftb_put_decimal(vm->out, ftb_load32(mem.data + 4, 1) & 0x0fffffff);
    }
    if (form & FTB_SA_SCOPE) {
        ftb_put_char(vm->out, '%');
        ftb_put_decimal(vm->out, ftb_load32(mem.data + 24, vm->program->big_endian));
    }
}

void ftb_emit_sockaddr(const ftb_vm *vm, const ftb_insn *op, ftb_mem mem)
{
    unsigned family = mem.size >= 2 ? ftb_load16(mem.data, vm->program->big_endian) : 0;
    if (family == 2) { /* AF_INET */
        if (!enough(vm, mem, 8))
            return;
        put_ip4(vm, mem.data + 4, 0);
        if (op->arg & FTB_SA_PORT) {
            ftb_put_char(vm->out, ':');
            ftb_put_decimal(vm->out, be16(mem.data + 2));
        }
    } else if (family == 10) { /* AF_INET6 */
        put_sockaddr6(vm, mem, op->arg);
    } else {
        FTB_PUTS(vm->out, "(einval)");
    }
}

void ftb_emit_uuid(const ftb_vm *vm, const ftb_insn *op, ftb_mem mem)
{
    static const uint8_t little[16] = {3, 2, 1, 0, 5, 4, 7, 6, 8, 9, 10, 11, 12, 13, 14, 15};
    if (!enough(vm, mem, 16))
        return;
    for (int i = 0; i < 16; i++) {
        if (i == 4 || i == 6 || i == 8 || i == 10)
            ftb_put_char(vm->out, '-');
        ftb_put_hex(vm->out, mem.data[op->arg & 1 ? little[i] : i], 2, op->arg & 2);
    }
}

void ftb_emit_fourcc(const ftb_vm *vm, ftb_mem mem)
{
    if (!enough(vm, mem, 4))
        return;
    uint32_t code = ftb_load32(mem.data, vm->program->big_endian);
    for (int i = 0; i < 4; i++) {
        unsigned char c = (unsigned char)((code & ~(1u << 31)) >> (8 * i));
        ftb_put_char(vm->out, c >= 0x20 && c < 0x7f ? (char)c : '.');
    }
    if (code >> 31)
        FTB_PUTS(vm->out, " big-endian (0x");
    else
        FTB_PUTS(vm->out, " little-endian (0x");
    ftb_put_hex(vm->out, code, 8, false);
    ftb_put_char(vm->out, ')');
}

/* -- SCSI commands */

static uint64_t be_number(const uint8_t *p, int bytes)
{
    uint64_t value = 0;
    for (int i = 0; i < bytes; i++)
        value = value << 8 | p[i];
    return value;
}

static void put_named(const ftb_vm *vm, const char *name, uint64_t value)
{
    ftb_put(vm->out, name, strlen(name));
    ftb_put_decimal(vm->out, value);
}

/* Where block address and count stand in a command; the opcode's top three bits tell its length. */
static void put_read_write(const ftb_vm *vm, const uint8_t *cdb, int lba_size, int count_at, int count_size)
{
    put_named(vm, "lba=", be_number(cdb + 2, lba_size));
    put_named(vm, " txlen=", be_number(cdb + count_at, count_size));
    put_named(vm, " protect=", cdb[1] >> 5);
    if (cdb[0] == 0x41 || cdb[0] == 0x93) /* WRITE SAME */
        put_named(vm, " unmap=", cdb[1] >> 3 & 1);
}

void ftb_emit_cdb(const ftb_vm *vm, ftb_mem mem, int64_t bytes)
{
    uint8_t cdb[16] = {0};
    size_t n = bytes < 0 ? 0 : (uint64_t)bytes < mem.size ? (size_t)bytes : mem.size;
    if (n > 0)
        memcpy(cdb, mem.data, n < sizeof cdb ? n : sizeof cdb);
    switch (cdb[0]) {
    case 0x08: case 0x0a: /* READ(6), WRITE(6) */
        put_named(vm, "lba=", be_number(cdb + 1, 3) & 0x1fffff);
        put_named(vm, " txlen=", cdb[4] ? cdb[4] : 256);
        break;
    case 0x28: case 0x2a: case 0x2f: case 0x41: put_read_write(vm, cdb, 4, 7, 2); break;
    case 0xa8: case 0xaa: case 0xaf: put_read_write(vm, cdb, 4, 6, 4); break;
    case 0x88: case 0x8a: case 0x8f: case 0x93: put_read_write(vm, cdb, 8, 10, 4); break;
    case 0x42: put_named(vm, "regions=", (be_number(cdb + 7, 2) - 8) / 16); break;
    case 0x9e: /* SERVICE ACTION IN(16) */
        if ((cdb[1] & 0x1f) == 0x10)
            FTB_PUTS(vm->out, "READ_CAPACITY_16");
        else if ((cdb[1] & 0x1f) == 0x12)
            FTB_PUTS(vm->out, "GET_LBA_STATUS");
        else {
            FTB_PUTS(vm->out, "UNKNOWN");
            break;
        }
        put_named(vm, " lba=", be_number(cdb + 2, 8));
        put_named(vm, " alloc_len=", be_number(cdb + 10, 4));
        break;
    default: ftb_put_char(vm->out, '-'); break;
    }
}
