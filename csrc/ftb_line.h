/* Whole lines of text for a batch of record refs: a plan of columns as data, one loop that has no decisions left. */
#ifndef FTB_LINE_H
#define FTB_LINE_H

#include "ftb_expr.h"

/* The order of ftbuf/report/lineplan.py Op; what a column prints is described there. */
enum ftb_line_op {
    FTB_LINE_TEXT,
    FTB_LINE_COMM,
    FTB_LINE_COMM_CUT,
    FTB_LINE_PID,
    FTB_LINE_PID_RIGHT,
    FTB_LINE_PID_PLAIN,
    FTB_LINE_PID_HEX,
    FTB_LINE_TGID,
    FTB_LINE_CPU,
    FTB_LINE_CPU_RIGHT,
    FTB_LINE_CPU_HEX,
    FTB_LINE_LATENCY,
    FTB_LINE_FLAGS,
    FTB_LINE_PREEMPT_HEX,
    FTB_LINE_INDEX_HEX,
    FTB_LINE_TIME_US,
    FTB_LINE_TIME_NS,
    FTB_LINE_TIME_RAW,
    FTB_LINE_TIME_HEX,
    FTB_LINE_TIME_US_HEX,
    FTB_LINE_REL_US,
    FTB_LINE_REL_MS,
    FTB_LINE_NEXT_MS,
    FTB_LINE_NEXT_MARK,
    FTB_LINE_NEXT_RAW,
    FTB_LINE_BODY,
    FTB_LINE_BUFFER,
    FTB_LINE_FLAGS_HEX,
    FTB_LINE_EVENT_NAME,
    FTB_LINE_DIFF,
    FTB_LINE_DIFF_US,
    FTB_LINE_TIME_US_CUT,
    FTB_LINE_INDENT,
    FTB_LINE_PROC,
    FTB_LINE_OPS
};

typedef struct ftb_piece {
    uint32_t offset, size; /* in texts */
} ftb_piece;

typedef struct ftb_line_column {
    uint32_t op, width;
    ftb_piece text; /* TEXT: what it prints */
} ftb_line_column;

/* Where a common field stands; width 0: the records do not have it, and it counts as 0. */
typedef struct ftb_place {
    uint32_t offset, width;
} ftb_place;

/* What the records of a slot are to a drawn graph of calls. */
enum ftb_line_call_kind { FTB_LINE_NO_CALL, FTB_LINE_CALL, FTB_LINE_RETURN };

typedef struct ftb_line_call {
    uint32_t kind;
    ftb_place func, depth;
    const ftb_program *leaf; /* of returns: the body of a call and its return in one line, out of the return */
} ftb_line_call;

typedef struct ftb_line_plan {
    const ftb_line_column *columns;
    uint32_t n_columns;
    const char *texts;
    const ftb_piece *flags;   /* 256: three characters by common_flags */
    const ftb_piece *preempt; /* 256: by common_preempt_count */
    const ftb_piece *labels;  /* by buffer */
    const ftb_piece *names;   /* by slot: what EVENT_NAME prints */
    const ftb_piece *comms;   /* by code */
    const int32_t *code_of_pid;
    const int32_t *tgid_of_pid; /* 0: not known */
    uint32_t n_labels, n_slots, n_pids, n_tgids;
    const ftb_program *const *bodies; /* by slot; NULL: not for this loop */
    const ftb_line_call *calls; /* by slot; NULL: none are drawn */
    ftb_place pid, common_flags, preempt_count;
    uint32_t n_call;  /* the kernel's graph: how many columns lines of calls have, of which the last is the body; other records have the
                       * columns before the body and those behind. 0: another layout */
    uint64_t irq_low, irq_high; /* the kernel's graph: functions that interrupts begin with */
    uint8_t big_endian;
    uint8_t needs_next; /* ftb_line_plan_prepare: a column tells of the time until the record after */
    int64_t start;    /* relative times count from here */
    uint32_t n_head;  /* ftb_line_plan_prepare: columns at the beginning that are the same for all records of a task on a stream, */
    uint32_t common_size; /* bytes of a record that hold its common fields, where these have the usual widths; else 0 */
    size_t head_room; /* and bytes that they take at the most */
    size_t room;      /* bytes that all columns but the body take at the most, and FTB_SLACK for each */
    size_t max_line;  /* a longer line is not for this loop; 0: no limit */
} ftb_line_plan;

/* How lines of the task that was met last on a stream begin; the text stands in ftb_line_state. */
typedef struct ftb_line_head {
    uint8_t is_set;
    int32_t pid;
    uint32_t size;
    ftb_piece comm; /* of the task */
} ftb_line_head;

/* What the kernel's graph knows of a CPU (K:trace_functions_graph.c struct fgraph_cpu_data); the caller knows it, too. */
#define FTB_DRAWN_DEPTHS 50
typedef struct ftb_drawn_cpu {
    int64_t pid, depth, irq_depth;
    uint64_t functions[FTB_DRAWN_DEPTHS]; /* that were called, by depth; 0: none */
} ftb_drawn_cpu;

#define FTB_LINE_SECONDS 40
#define FTB_LINE_HEAD_MAX (1 << 14) /* longer heads are not kept */

typedef struct ftb_line_state {
    int64_t previous; /* time of the line before */
    uint64_t index;   /* lines so far */
    ftb_line_head *heads; /* by stream, zeroed before the first line */
    char *head_texts;     /* by stream, plan->head_room bytes each */
    uint64_t second;      /* what `seconds` says, and a dot; seconds_size 0: nothing yet */
    uint32_t seconds_size;
    char seconds[FTB_LINE_SECONDS + FTB_SLACK];
    uint8_t drawn[FTB_BATCH]; /* of the batch: returns whose line is that of their call; to be skipped */
    ftb_drawn_cpu *cpus;      /* by stream, for the kernel's graph */
    uint8_t *begun;   /* by stream: whether its first line was printed; that one is the caller's, who may have more to say */
} ftb_line_state;

/* Append lines for records `from` on, until the batch is at its end, `enough` bytes are there, or a record is met that this loop
 * leaves to its caller: a stream's first, after a loss, without a program, of an odd time or pid, damaged, or one whose line needs
 * the record after, which is not there. A call whose next record (in the kernel's graph of the same stream) is its return has one line
 * with it. Returns the place of the first record not done. */
uint32_t ftb_render_lines(const ftb_line_plan *plan, ftb_line_state *state, ftb_text_context *context, const ftb_stream *streams,
                          const ftb_batch *batch, uint32_t from, size_t enough, ftb_text *out);

/* Which record of the batch is the return that a call is drawn with: its place, k where there is none, batch->n where it is not known. */
uint32_t ftb_line_return_of(const ftb_line_plan *plan, const ftb_line_state *state, const ftb_batch *batch, uint32_t k);

/* Fill in what follows from the columns; whether every column is one that there is. */
bool ftb_line_plan_prepare(ftb_line_plan *plan);

#endif
