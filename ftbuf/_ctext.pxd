# The C contract of expressions and text as Cython sees it: declarations of csrc/ftb_expr.h and nothing else.
from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t


cdef extern from "ftb_expr.h" nogil:
    ctypedef struct ftb_program:
        uint8_t big_endian
        uint8_t long_size
        bint emits
        bint result

    ctypedef struct ftb_symbols:
        const uint64_t *addresses
        const uint64_t *ends
        const uint32_t *names
        const uint32_t *exact
        const char *texts
        uint32_t count
        uint32_t texts_size

    ctypedef struct ftb_strings:
        const uint64_t *addresses
        const uint32_t *offsets
        const char *texts
        uint32_t count
        uint32_t texts_size

    ctypedef struct ftb_tasks:
        const int32_t *pids
        const uint32_t *offsets
        const char *texts
        uint32_t count
        uint32_t texts_size

    ctypedef struct ftb_printk:
        const uint64_t *addresses
        const ftb_program **programs
        uint32_t count

    ctypedef struct ftb_symbol_cache:
        pass

    ctypedef struct ftb_calls:
        pass

    ctypedef struct ftb_text_context:
        const ftb_symbols *symbols
        const ftb_strings *strings
        const ftb_printk *printk
        const ftb_tasks *comms
        ftb_symbol_cache *cache
        ftb_calls *calls
        uint32_t n_calls
        const char *comm
        uint32_t comm_size
        int32_t pid
        int32_t cpu
        int64_t ts

    ctypedef struct ftb_text:
        char *data
        size_t len
        size_t cap
        size_t limit
        int status

    int ftb_text_append(ftb_text *text, const char *data, size_t size)
    void ftb_text_free(ftb_text *text)
    int ftb_program_open(const void *block, size_t size, ftb_program *program)
    int ftb_render_body(const ftb_program *program, const ftb_text_context *context, const uint8_t *payload, size_t size, ftb_text *out)
    int ftb_eval(const ftb_program *program, const ftb_text_context *context, const uint8_t *payload, size_t size, int64_t *value)
    void ftb_symbol_cache_reset(ftb_symbol_cache *cache)
