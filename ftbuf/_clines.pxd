# The C contract of lines as Cython sees it: declarations of csrc/ftb_line.h and nothing else.
from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t

from ftbuf._csrc cimport ftb_batch, ftb_stream
from ftbuf._ctext cimport ftb_program, ftb_text, ftb_text_context


cdef extern from "ftb_line.h" nogil:
    int FTB_SLACK
    int FTB_LINE_BODY

    ctypedef struct ftb_piece:
        uint32_t offset
        uint32_t size

    ctypedef struct ftb_line_column:
        uint32_t op
        uint32_t width
        ftb_piece text

    ctypedef struct ftb_place:
        uint32_t offset
        uint32_t width

    ctypedef struct ftb_line_call:
        uint32_t kind
        ftb_place func
        ftb_place depth
        const ftb_program *leaf

    ctypedef struct ftb_line_plan:
        const ftb_line_column *columns
        uint32_t n_columns
        const char *texts
        const ftb_piece *flags
        const ftb_piece *preempt
        const ftb_piece *labels
        const ftb_piece *names
        const ftb_piece *comms
        const int32_t *code_of_pid
        const int32_t *tgid_of_pid
        uint32_t n_labels
        uint32_t n_slots
        uint32_t n_pids
        uint32_t n_tgids
        const ftb_program **bodies
        const ftb_line_call *calls
        ftb_place pid
        ftb_place common_flags
        ftb_place preempt_count
        uint32_t n_call
        uint64_t irq_low
        uint64_t irq_high
        uint8_t big_endian
        uint8_t needs_next
        int64_t start
        uint32_t n_head
        size_t head_room
        size_t room
        size_t max_line

    ctypedef struct ftb_line_head:
        pass

    ctypedef struct ftb_drawn_cpu:
        int64_t pid
        int64_t irq_depth

    ctypedef struct ftb_line_state:
        int64_t previous
        uint64_t index
        ftb_line_head *heads
        char *head_texts
        uint8_t *drawn
        ftb_drawn_cpu *cpus
        uint8_t *begun

    uint32_t ftb_render_lines(const ftb_line_plan *plan, ftb_line_state *state, ftb_text_context *context,
                              const ftb_stream *streams, const ftb_batch *batch, uint32_t start, size_t enough, ftb_text *out)
    uint32_t ftb_line_return_of(const ftb_line_plan *plan, const ftb_line_state *state, const ftb_batch *batch, uint32_t k)
    bint ftb_line_plan_prepare(ftb_line_plan *plan)
