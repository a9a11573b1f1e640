/* Expressions and print formats: one bytecode, one evaluator, two users (text and filters).
 *
 * A program comes from ftbuf/bytecode.py as one block of bytes in host order: header, operations, pool. It is a stack machine
 * with two stacks, integers and byte ranges ("mems"), whose depths stand in every operation, so that verifying is one pass over
 * the operations. Jumps only go forward: every program ends. Nothing here allocates except ftb_text when its buffer grows.
 */
#ifndef FTB_EXPR_H
#define FTB_EXPR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ftbuf.h"

/* X(name, integers popped, integers pushed, mems popped, mems pushed); ftbuf/bytecode.py has the same list in the same order. */
#define FTB_INSNS(X)                                                                                                            \
    X(END, 0, 0, 0, 0)    /* an integer may be left: the result of a filter */                                                \
    X(PUSH, 0, 1, 0, 0)   /* imm */                                                                                           \
    X(FIELD, 0, 1, 0, 0)  /* arg offset, size */                                                                              \
    X(CONTEXT, 0, 1, 0, 0) /* arg: enum ftb_pseudo */                                                                         \
    X(DYNLEN, 0, 1, 0, 0) /* arg offset, size: enum ftb_where */                                                              \
    X(CONV, 1, 1, 0, 0)   /* to size */                                                                                       \
    X(NEG, 1, 1, 0, 0)                                                                                                        \
    X(NOT, 1, 1, 0, 0)                                                                                                        \
    X(LNOT, 1, 1, 0, 0)                                                                                                       \
    X(SWAP, 1, 1, 0, 0) /* bytes of size */                                                                                   \
    X(ADD, 2, 1, 0, 0)                                                                                                        \
    X(SUB, 2, 1, 0, 0)                                                                                                        \
    X(MUL, 2, 1, 0, 0)                                                                                                        \
    X(DIV, 2, 1, 0, 0)                                                                                                        \
    X(MOD, 2, 1, 0, 0)                                                                                                        \
    X(SHL, 2, 1, 0, 0)                                                                                                        \
    X(SHR, 2, 1, 0, 0)                                                                                                        \
    X(AND, 2, 1, 0, 0)                                                                                                        \
    X(OR, 2, 1, 0, 0)                                                                                                         \
    X(XOR, 2, 1, 0, 0)                                                                                                        \
    X(EQ, 2, 1, 0, 0)                                                                                                         \
    X(NE, 2, 1, 0, 0)                                                                                                         \
    X(LT, 2, 1, 0, 0)                                                                                                         \
    X(LE, 2, 1, 0, 0)                                                                                                         \
    X(GT, 2, 1, 0, 0)                                                                                                         \
    X(GE, 2, 1, 0, 0)                                                                                                         \
    X(JUMP, 0, 0, 0, 0)  /* arg target */                                                                                     \
    X(JZ, 1, 0, 0, 0)                                                                                                         \
    X(JNZ, 1, 0, 0, 0)                                                                                                        \
    X(DUP, 1, 2, 0, 0)                                                                                                        \
    X(POP, 1, 0, 0, 0)                                                                                                        \
    X(SET, 1, 0, 0, 0) /* arg: local */                                                                                       \
    X(GET, 0, 1, 0, 0)                                                                                                        \
    X(ARG, 0, 1, 0, 0)     /* trace_printk: next integer of size in the argument buffer */                                    \
    X(ARGMEM, 0, 0, 0, 1)  /* trace_printk: next string in the argument buffer */                                             \
    X(MFIELD, 0, 0, 0, 1)  /* arg offset, imm bytes */                                                                        \
    X(MDYN, 0, 0, 0, 1)    /* arg offset, size: enum ftb_where */                                                             \
    X(MTAIL, 0, 0, 0, 1)   /* arg offset, imm bytes at the most; 0: all */                                                                                   \
    X(MPOOL, 0, 0, 0, 1)   /* arg pool offset, imm bytes */                                                                   \
    X(MCOMM, 0, 0, 0, 1)                                                                                                      \
    X(MCOMMOF, 1, 0, 0, 1) /* name of the task of a pid */                                                                    \
    X(MLOOKUP, 1, 0, 0, 1) /* a kernel pointer: its text in printk_formats, else empty */                                     \
    X(MSKIP, 1, 0, 1, 1)   /* mem + bytes */                                                                                  \
    X(MDROP, 0, 0, 1, 0)                                                                                                      \
    X(INDEX, 1, 1, 1, 0)   /* element of size; 0 outside */                                                                   \
    X(MLEN, 0, 1, 1, 0)                                                                                                       \
    X(STREQ, 0, 1, 1, 0)   /* arg, imm: text in the pool */                                                                   \
    X(GLOB, 0, 1, 1, 0)    /* arg, imm: pattern in the pool */                                                                \
    X(MASK, 0, 1, 1, 0)    /* arg, imm: bits in the pool; size: enum ftb_mask */                                              \
    X(REGEX, 0, 1, 1, 0)   /* arg, imm: automaton in the pool, see ftbuf/regex.py */                                          \
    X(IN, 1, 1, 0, 0)      /* arg: ascending ranges in the pool, u64 first, u64 last; imm: how many */                        \
    X(TEXT, 0, 0, 0, 0)    /* arg, imm: text in the pool, which goes on for FTB_SLACK bytes at least */                       \
    X(TFINT, 0, 0, 0, 0)   /* TEXT and a FINT without a width: arg: text, size, imm: FTB_TFINT_FIELD */                        \
    X(MARK, 0, 1, 0, 0)    /* length of the text so far */                                                                    \
    X(PAD, 3, 0, 0, 0)     /* mark, width, precision: cut and pad what was written since; imm spec */                         \
    X(INT, 1, 0, 0, 0)     /* imm spec, size */                                                                               \
    X(FINT, 0, 0, 0, 0)    /* arg offset, size, imm spec: FIELD and INT, whose size stands in the spec */                                                                               \
    X(INTX, 3, 0, 0, 0)    /* width, precision, value */                                                                      \
    X(CHAR, 1, 0, 0, 0)                                                                                                       \
    X(STR, 0, 0, 1, 0)     /* imm spec */                                                                                     \
    X(STRX, 2, 0, 1, 0)    /* width, precision */                                                                             \
    X(PSTR, 1, 0, 0, 0)    /* a kernel pointer as %s: its text in printk_formats; arg: enum ftb_pointer */                    \
    X(PTR, 1, 0, 0, 0)     /* arg: enum ftb_pointer */                                                                        \
    X(SYM, 1, 0, 0, 0)     /* arg: enum ftb_symbol_form */                                                                    \
    X(FLAGS, 1, 0, 0, 0)   /* arg: table in the pool, imm: delimiter in the pool (low offset, high length), size */           \
    X(SYMBOLIC, 1, 0, 0, 0) /* arg: table in the pool, size */                                                                \
    X(HEX, 1, 0, 1, 0)     /* arg: separator or 0, bytes */                                                                   \
    X(ARRAY, 2, 0, 1, 0)   /* count, element size; arg: 1 decimal with blanks */                                              \
    X(HEXDUMP, 5, 0, 1, 0) /* prefix type, row size, group size, bytes, ascii; arg, imm: prefix text */                       \
    X(BITS, 1, 0, 1, 0)    /* arg: 0 hex groups, 1 list; bits or -1 */                                                        \
    X(MAC, 0, 0, 1, 0)     /* arg: separator or 0, 0x100: reversed */                                                         \
    X(IP4, 0, 0, 1, 0)     /* arg: 1 leading zeros, 2 reversed bytes */                                                       \
    X(IP6, 0, 0, 1, 0)     /* arg: 0 full, 1 no colons, 2 compressed */                                                       \
    X(SOCKADDR, 0, 0, 1, 0) /* arg: enum ftb_sockaddr_form */                                                                 \
    X(UUID, 0, 0, 1, 0)    /* arg: 1 little endian, 2 upper case */                                                           \
    X(FOURCC, 0, 0, 1, 0)                                                                                                     \
    X(ESCAPED, 0, 0, 1, 0) /* bytes as they stand, what is not printable as '.' */                                            \
    X(CDB, 1, 0, 1, 0)     /* a SCSI command block of so many bytes */                                                        \
    X(BPRINT, 1, 0, 1, 0)  /* format address, argument buffer */                                                              \
    X(STACK, 1, 0, 1, 0)   /* entries or -1, addresses; arg: enum ftb_stack_form */                                           \
    X(OPAQUE, 0, 0, 1, 0)  /* arg: 0 "aa,bb", 1 "ARRAY[aa, bb]", 2 likewise what is no text */                                \
    X(CHOMP, 0, 0, 0, 0)   /* take one newline back that ends the text */                                                     \
    X(CALLS, 2, 0, 0, 0)   /* function, parent: blanks for the depth of calls that can be guessed */

enum ftb_opcode {
#define FTB_X_NAME(name, ipop, ipush, mpop, mpush) FTB_X_##name,
    FTB_INSNS(FTB_X_NAME)
#undef FTB_X_NAME
        FTB_X_COUNT
};

enum ftb_pseudo { FTB_PSEUDO_CPU, FTB_PSEUDO_PID, FTB_PSEUDO_TS, FTB_PSEUDO_COUNT };
enum ftb_where { FTB_WHERE_DATA_LOC = 1, FTB_WHERE_REL_LOC = 2, FTB_WHERE_SHORT_LOC = 3 };
enum ftb_mask { FTB_MASK_ANY, FTB_MASK_EQUAL, FTB_MASK_DIFFERENT, FTB_MASK_COUNT };
/* How a raw pointer looks: trace-cmd (0x.., (nil)), the kernel's %p and %px (full width), 0x with lower case, or the kernel's %pK. */
enum ftb_pointer { FTB_POINTER_C, FTB_POINTER_KERNEL, FTB_POINTER_HEX, FTB_POINTER_COUNT };
enum ftb_symbol_form {
    FTB_SYM_OFFSET = 1,  /* name+0xoff */
    FTB_SYM_SIZE = 2,    /* ...and /0xsize */
    FTB_SYM_MODULE = 4,  /* ...and " [module]" */
    FTB_SYM_CALLER = 8,  /* look the byte before up: a return address after a call that does not return */
    FTB_SYM_ADDRESS = 16, /* ...and " <address>" */
    FTB_SYM_SLASH = 32,   /* name/0xoff, and 8 digits at least where there is no symbol */
    FTB_SYM_PREFIX = 64   /* "(name+0xoff) ", and nothing where there is no symbol */
};
enum ftb_sockaddr_form { FTB_SA_PORT = 1, FTB_SA_COMPRESSED = 2, FTB_SA_FLOW = 4, FTB_SA_SCOPE = 8 };
enum ftb_stack_form { FTB_STACK_KERNEL, FTB_STACK_TRACE_CMD, FTB_STACK_USER, FTB_STACK_COUNT };

/* Spec of one printf conversion, packed in an operation's imm. */
#define FTB_SPEC_WIDTH(s) ((int)((s) & 0xffff))
#define FTB_SPEC_PRECISION(s) ((int)(((s) >> 16) & 0xffff) - 1) /* -1: none */
#define FTB_SPEC_FLAGS(s) ((unsigned)(((s) >> 32) & 0xff))
#define FTB_SPEC_BASE(s) ((unsigned)(((s) >> 40) & 0xff))
#define FTB_SPEC_SIZE(s) ((unsigned)(((s) >> 48) & 0xff)) /* of FINT: what the field is printed as */
/* imm of TFINT: base and size of a spec; where the field stands, and how long the text is: FTB_SLACK at the most. */
#define FTB_TFINT_FIELD(s) ((uint32_t)((s) & 0xffff))
#define FTB_TFINT_TEXT(s) ((uint32_t)(((s) >> 16) & 0xff))
#define FTB_SPEC_OF_INT(s) ((s) & UINT64_C(0xffffffffffff))
enum ftb_spec_flags {
    FTB_SPEC_LEFT = 1,
    FTB_SPEC_PLUS = 2,
    FTB_SPEC_SPACE = 4,
    FTB_SPEC_ALT = 8,
    FTB_SPEC_ZERO = 16,
    FTB_SPEC_UPPER = 32,
    FTB_SPEC_KERNEL = 64 /* lib/vsprintf.c: "0x0", zeros despite a precision */
};

#define FTB_SIZE_SIGNED 0x80 /* in ftb_insn.size, over 1, 2, 4 or 8 */
#define FTB_SLACK 32 /* bytes that can be read behind every text: short ones are copied as one block of this size */
#define FTB_INT_STACK 64
#define FTB_MEM_STACK 8
#define FTB_LOCALS 16
#define FTB_PROGRAM_MAGIC 0x31425446u /* "FTB1" */

typedef struct ftb_insn {
    uint8_t code;
    uint8_t size;
    uint8_t depth;     /* integers on the stack before this operation */
    uint8_t mem_depth; /* mems on the stack before this operation */
    uint32_t arg;
    uint64_t imm;
} ftb_insn;

typedef struct ftb_program_header {
    uint32_t magic;
    uint32_t op_count;
    uint32_t pool_size;
    uint8_t big_endian; /* of the traced kernel */
    uint8_t long_size;
    uint8_t reserved[2];
} ftb_program_header;

/* A verified program; borrows the bytes it was opened from. */
typedef struct ftb_program {
    const ftb_insn *ops;
    const uint8_t *pool;
    uint32_t op_count;
    uint32_t pool_size;
    uint8_t big_endian;
    uint8_t long_size;
    bool emits;  /* writes text: for ftb_render_body only */
    bool has_locals;
    bool result; /* leaves an integer: for ftb_eval only */
} ftb_program;

/* Kernel symbols by address. `texts` holds NAME NUL MODULE NUL wherever an offset points to, and ends with NUL. */
typedef struct ftb_symbols {
    const uint64_t *addresses; /* strictly ascending */
    const uint64_t *ends;      /* first byte that no longer counts to the symbol */
    const uint32_t *names;     /* offset of each symbol's text */
    const uint32_t *exact;     /* ...for exactly its first address, where trace-cmd picks another alias */
    const char *texts;
    uint32_t count;
    uint32_t texts_size;
} ftb_symbols;

/* Strings of the kernel by address (printk_formats, __tracepoint_string). */
typedef struct ftb_strings {
    const uint64_t *addresses; /* strictly ascending */
    const uint32_t *offsets;   /* count + 1 offsets into texts */
    const char *texts;
    uint32_t count;
    uint32_t texts_size;
} ftb_strings;

/* Names of tasks by pid, for events that name a task by its pid alone. */
typedef struct ftb_tasks {
    const int32_t *pids;     /* strictly ascending */
    const uint32_t *offsets; /* count + 1 offsets into texts */
    const char *texts;
    uint32_t count;
    uint32_t texts_size;
} ftb_tasks;

/* Compiled trace_printk formats by address. */
typedef struct ftb_printk {
    const uint64_t *addresses; /* strictly ascending */
    const ftb_program *const *programs;
    uint32_t count;
} ftb_printk;

#define FTB_NO_SYMBOL UINT32_MAX
#define FTB_SYMBOL_CACHE_BITS 14
#define FTB_SYMBOL_CACHE (1 << FTB_SYMBOL_CACHE_BITS) /* entries */

/* What was looked up lately. Caller-owned, one per thread and symbol table; ftb_symbol_cache_reset before first use. */
typedef struct ftb_symbol_cache {
    struct ftb_symbol_hit { /* small, so that many stay in the processor's first caches */
        uint64_t address;
        uint64_t start; /* of the symbol that covers the address */
        uint32_t name;  /* offset in the symbols' texts; FTB_NO_SYMBOL: none covers it */
        uint32_t name_size;
        uint32_t name_hash;
        uint32_t row; /* in the table */
    } hits[FTB_SYMBOL_CACHE];
} ftb_symbol_cache;

/* Guesses how deep a traced function was called: by CPU, the functions of a chain of callers as far as it was seen.
 * Caller-owned, zeroed before first use, one per report. Without it depths are 0. */
#define FTB_CALL_DEPTH 128
typedef struct ftb_calls {
    uint32_t hashes[FTB_CALL_DEPTH]; /* of the names */
    const char *names[FTB_CALL_DEPTH];
    uint32_t count;
} ftb_calls;

/* What a program can see besides its record. Every pointer may be NULL. */
typedef struct ftb_text_context {
    const ftb_symbols *symbols;
    const ftb_strings *strings;
    const ftb_printk *printk;
    const ftb_tasks *comms;
    ftb_symbol_cache *cache;
    ftb_calls *calls; /* n_calls CPUs */
    uint32_t n_calls;
    const char *comm; /* of the record's task */
    uint32_t comm_size;
    int32_t pid;
    int32_t cpu;
    int64_t ts;
} ftb_text_context;

/* A growing text. Zeroed is empty; `limit` 0 stands for FTB_TEXT_LIMIT. ftb_text_free gives the memory back. */
#define FTB_TEXT_LIMIT ((size_t)1 << 30)
typedef struct ftb_text {
    char *data;
    size_t len;
    size_t cap;
    size_t limit;
    int status; /* sticky: FTB_NO_MEMORY once it could not grow */
} ftb_text;

int ftb_text_reserve(ftb_text *text, size_t more);
int ftb_text_append(ftb_text *text, const char *data, size_t size);
void ftb_text_free(ftb_text *text);

/* All return an ftb_status: FTB_BAD_PLAN for a block that is not a valid program, FTB_RECORD_SHORT and FTB_FIELD_OUTSIDE for a
 * record that does not have what the program reads. */

/* Verify a block and describe it. `block` must be 8-byte aligned and outlive the program. */
int ftb_program_open(const void *block, size_t size, ftb_program *program);

/* Append the body of one record. On failure the text is as it was before. */
int ftb_render_body(const ftb_program *program, const ftb_text_context *context, const uint8_t *payload, size_t size, ftb_text *out);

/* The value of a filter for one record. */
int ftb_eval(const ftb_program *program, const ftb_text_context *context, const uint8_t *payload, size_t size, int64_t *value);

void ftb_symbol_cache_reset(ftb_symbol_cache *cache);
/* The symbol that covers an address. */
const struct ftb_symbol_hit *ftb_symbol_find(const ftb_text_context *context, uint64_t address, struct ftb_symbol_hit *scratch);

#endif
