# The C contract as Cython sees it: declarations of csrc/ftbuf.h and nothing else.
from libc.stdint cimport int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t

from ftbuf._ctext cimport ftb_program


cdef extern from "ftbuf.h" nogil:
    const char *ftb_status_name(int status)
    const char *ftb_status_message(int status)
    int FTB_OK
    int FTB_NEED_SEGMENT
    int FTB_DONE
    int FTB_NO_MEMORY
    int FTB_BAD_PLAN
    int FTB_N_STATUSES

    ctypedef struct ftb_abi:
        uint32_t subbuf_size
        uint32_t data_offset
        uint32_t commit_size
        uint32_t type_offset
        uint32_t type_size
        uint8_t big_endian
        uint8_t old_header

    ctypedef struct ftb_clock:
        uint32_t n_samples
        uint8_t interpolate
        const int64_t *times
        const int64_t *offsets
        const int64_t *scalings
        const int64_t *fractions
        uint32_t mult
        uint32_t shift
        uint64_t hz
        int64_t offset

    int64_t ftb_clock_apply(const ftb_clock *clock, uint64_t raw)

    int FTB_BATCH
    int FTB_N_IDS
    int FTB_NO_SLOT
    int FTB_NO_PLAN
    int FTB_NEW_PLAN
    int FTB_NEED_PLAN
    int FTB_LOST_BEFORE
    int FTB_MAX_STREAMS

    ctypedef struct ftb_batch:
        uint32_t n
        int64_t *ts
        const uint8_t **data
        uint64_t *meta

    void ftb_batch_clear(ftb_batch *b)
    uint32_t ftb_len(const ftb_batch *b, uint32_t k)
    uint16_t ftb_slot(const ftb_batch *b, uint32_t k)
    uint32_t ftb_stream_index(const ftb_batch *b, uint32_t k)
    bint ftb_is_after_loss(const ftb_batch *b, uint32_t k)

    ctypedef struct ftb_pool:
        size_t kept

    ctypedef struct ftb_column:
        uint8_t *data
        size_t size
        size_t ready
        size_t capacity
        uint8_t mapped
        ftb_pool *pool

    int ftb_column_reserve(ftb_column *column, size_t extra)
    void ftb_pool_empty(ftb_pool *pool)
    void ftb_column_trim(ftb_column *column)
    void ftb_column_free(ftb_column *column)

    ctypedef struct ftb_select:
        const uint16_t *slot_of
        uint8_t has_window
        uint8_t pid_width
        uint32_t pid_offset
        int64_t start
        int64_t end
        const int32_t *pids
        uint32_t n_pids
        const ftb_program **filter_of_slot

    ctypedef struct ftb_stream:
        const ftb_abi *abi
        const ftb_clock *clock
        const ftb_select *select
        uint32_t index
        uint32_t cpu
        uint32_t buffer
        uint8_t last_segment
        const uint8_t *data
        size_t size
        uint64_t file_offset
        uint8_t backwards
        int64_t last_ts
        uint64_t pages
        uint64_t events
        uint64_t paddings
        uint64_t time_extends
        uint64_t time_stamps
        uint64_t missed_pages

    ctypedef struct ftb_report:
        ftb_column problems
        ftb_column losses

    ctypedef struct ftb_segment:
        const uint8_t *data
        size_t size
        uint64_t file_offset

    void ftb_stream_feed_block(ftb_stream *s, const ftb_segment *block, uint32_t n)
    void ftb_stream_feed(ftb_stream *s, const uint8_t *data, size_t size, uint64_t file_offset, int last)
    int64_t ftb_page_time(const ftb_abi *abi, const ftb_clock *clock, const uint8_t *data, size_t size, size_t index)
    size_t ftb_find_page(const ftb_abi *abi, const ftb_clock *clock, const uint8_t *data, size_t size, int64_t ts)

    ctypedef struct ftb_source:
        ftb_batch *batch

    ctypedef struct ftb_merge:
        ftb_stream *streams
        uint32_t n_streams
        uint32_t need
        ftb_source *sources

    void ftb_merge_plant(ftb_merge *m)

    int ftb_merge_fill(ftb_merge *m, ftb_batch *out, ftb_report *report)

    ctypedef struct ftb_intern:
        ftb_column bytes
        ftb_column offsets
        uint32_t n

    int ftb_intern_init(ftb_intern *intern)
    void ftb_intern_free(ftb_intern *intern)
    int64_t ftb_intern_code(ftb_intern *intern, const uint8_t *s, size_t n)

    int FTB_OP_TS
    int FTB_OP_CPU
    int FTB_OP_BUFFER
    int FTB_OP_SLOT
    int FTB_OP_ORDER
    int FTB_OP_COMM
    int FTB_OP_SCALAR
    int FTB_OP_FIXED
    int FTB_OP_STRING
    int FTB_OP_LIST

    ctypedef struct ftb_op:
        uint8_t op
        uint8_t where
        uint8_t width
        uint8_t out_width
        uint8_t is_signed
        uint32_t offset
        uint32_t size
        size_t usual
        ftb_column column
        ftb_column values
        ftb_intern *intern

    ctypedef struct ftb_comms:
        const int32_t *code_of_pid
        uint32_t n_pids

    ctypedef struct ftb_plan:
        ftb_op *ops
        const ftb_comms *comms
        uint32_t n_ops
        uint32_t min_len
        uint8_t big_endian
        uint64_t rows
        uint64_t outside

    int ftb_plan_check(ftb_plan *plan)
    void ftb_plan_free(ftb_plan *plan)

    ctypedef struct ftb_span:
        const uint8_t *data
        uint32_t len

    ftb_span ftb_locate(const ftb_op *op, int big_endian, const uint8_t *data, uint32_t len, int *outside)
    uint64_t ftb_read_scalar(const ftb_op *op, int big_endian, const uint8_t *data)

    ctypedef struct ftb_gather_context:
        const ftb_stream *streams
        uint32_t n_streams
        uint64_t total_bytes

    int FTB_GROUP

    ctypedef struct ftb_group:
        uint32_t n

    ctypedef struct ftb_decoder:
        ftb_merge merge
        ftb_report report
        ftb_gather_context context
        const uint16_t *plan_of_slot
        uint64_t *count_of_slot
        ftb_plan *plans
        uint32_t n_plans
        ftb_group **groups
        uint8_t meets
        uint16_t new_slot
        int64_t *orders
        ftb_batch *batch

    int ftb_decode(ftb_decoder *d, uint64_t max_records)

    ctypedef struct ftb_repack:
        ftb_stream stream
        ftb_select select
        uint8_t *page
        size_t page_size
        ftb_column out
        ftb_report report
        uint64_t records
        uint64_t copied
        uint64_t rebuilt

    int ftb_repack_pages(ftb_repack *r, uint32_t max_pages)
    int ftb_repack_flush(ftb_repack *r)
