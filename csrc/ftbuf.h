/* The whole contract of the C core: statuses, the kernel's ABI as a value, record refs, plans, columns and every prototype.
 *
 * Data flows one way:  scan (page -> batch of record refs) -> clock -> select -> merge -> gather (columns), render or records.
 * A record ref points into a sub-buffer that the caller keeps alive until the batch is consumed; refs never own memory.
 * Nothing here does I/O, keeps globals or knows Python. All numbers read from a page are untrusted.
 */
#ifndef FTBUF_H
#define FTBUF_H

#include <stddef.h>
#include <stdint.h>

/* One list of statuses: enum, public name, message. */
#define FTB_STATUSES(X)                                                                                  \
    X(FTB_OK, "ok", "no error")                                                                          \
    X(FTB_NEED_SEGMENT, "need_segment", "a stream needs its next segment")                               \
    X(FTB_DONE, "done", "all streams are at their end")                                                  \
    X(FTB_NEED_PLAN, "need_plan", "an event was met whose plan is made only then")                       \
    X(FTB_NO_MEMORY, "no_memory", "out of memory")                                                       \
    X(FTB_BAD_PLAN, "bad_plan", "a plan names bytes or columns that cannot be")                          \
    X(FTB_PAGE_SHORT, "page_short", "fewer bytes than a sub-buffer header")                              \
    X(FTB_PAGE_CUT, "page_cut", "the sub-buffer ends before its committed data")                         \
    X(FTB_COMMIT_TOO_LARGE, "commit_too_large", "commit is larger than the sub-buffer's data area")      \
    X(FTB_HEADER_CUT, "header_cut", "fewer than 4 bytes where a record header is due")                   \
    X(FTB_RECORD_CUT, "record_cut", "a record runs past the committed data")                             \
    X(FTB_LENGTH_TOO_SMALL, "length_too_small", "a sized record is shorter than its own length field")   \
    X(FTB_EXTEND_CUT, "extend_cut", "a time extend runs past the committed data")                        \
    X(FTB_STAMP_CUT, "stamp_cut", "an absolute time stamp runs past the committed data")                 \
    X(FTB_PADDING_CUT, "padding_cut", "padding runs past the committed data")                            \
    X(FTB_BAD_RECORD_TYPE, "bad_record_type", "a record type that was never written")                    \
    X(FTB_TYPE_MISSING, "type_missing", "a data record too short to hold its event id")                  \
    X(FTB_LOST_COUNT_CUT, "lost_count_cut", "the stored count of lost events is outside the sub-buffer") \
    X(FTB_RECORD_SHORT, "record_short", "a record shorter than the fixed part of its event's format")    \
    X(FTB_UNKNOWN_EVENT, "unknown_event", "an event id that has no format")                              \
    X(FTB_FIELD_OUTSIDE, "field_outside", "a dynamic field lies outside its record")                     \
    X(FTB_TRUNCATED, "truncated", "the input ends before the data that its tables promise")              \
    X(FTB_BAD_COMPRESSION, "bad_compression", "a chunk does not decompress to what its header promises") \
    X(FTB_BAD_METADATA, "bad_metadata", "a section, option or table of the container is damaged")

typedef enum {
#define FTB_ENUM(id, name, message) id,
    FTB_STATUSES(FTB_ENUM)
#undef FTB_ENUM
    FTB_N_STATUSES
} ftb_status;

const char *ftb_status_name(int status);
const char *ftb_status_message(int status);

/* How the traced kernel lays out one buffer; read from the recording, never the host's. */
typedef struct {
    uint32_t subbuf_size;
    uint32_t data_offset;
    uint32_t commit_size; /* 4 or 8: the kernel's long */
    uint32_t type_offset; /* of common_type in a record's payload */
    uint32_t type_size;   /* 1, 2 or 4 */
    uint8_t big_endian;
    uint8_t old_header; /* the 2/3/27-bit record header of 2.6.28 to 2.6.30 */
} ftb_abi;

/* Time correction of one stream, applied in this order: guest shift, TSC to ns (or ts2secs), offset. */
typedef struct {
    uint32_t n_samples; /* guest to host; sorted by time, no equal times */
    uint8_t interpolate;
    const int64_t *times, *offsets, *scalings, *fractions;
    uint32_t mult, shift; /* mult 0: not a TSC */
    uint64_t hz;          /* not 0: ticks of this frequency to ns, instead of mult and shift */
    int64_t offset;
} ftb_clock;

int ftb_clock_is_identity(const ftb_clock *clock);
int64_t ftb_clock_apply(const ftb_clock *clock, uint64_t raw);
void ftb_clock_apply_all(const ftb_clock *clock, int64_t *ts, uint32_t n);

/* A batch of record refs: parallel arrays that stay in cache. */
#define FTB_BATCH 256
#define FTB_APART 24 /* places that keep parallel arrays from standing at like addresses, which caches and store buffers confuse */
#define FTB_N_IDS 0x10000u /* common_type is a u16 (K:trace_events.h) */
#define FTB_NO_SLOT 0xffffu
#define FTB_NO_PLAN 0xffffu  /* records are only counted */
#define FTB_NEW_PLAN 0xfffeu /* records are waited for: see FTB_NEED_PLAN */
#define FTB_LOST_BEFORE 0x8000u /* in the stream part of meta[]: events were lost just before this record */
#define FTB_MAX_STREAMS 0x8000u

typedef struct {
    uint32_t n;
    uint64_t differ; /* bits in which the words of meta[] may differ from one another: none where a run of alike records fills it;
                      * of lengths that differ not all bits, and of what else differs then none, need be here */
    int64_t ts[FTB_BATCH + FTB_APART];
    const uint8_t *data[FTB_BATCH + FTB_APART]; /* the payload, event fields start at offset 0 */
    uint64_t meta[FTB_BATCH + FTB_APART];       /* length of the payload, slot and stream in one word: one store, one compare */
} ftb_batch;

static inline uint64_t ftb_meta(uint32_t len, uint16_t slot, uint16_t stream)
{
    return (uint64_t)len << 32 | (uint64_t)slot << 16 | stream;
}

static inline uint32_t ftb_meta_len(uint64_t meta)
{
    return (uint32_t)(meta >> 32);
}

/* Index of its stream, without the mark. */
static inline uint32_t ftb_meta_stream(uint64_t meta)
{
    return (uint32_t)(meta & ~(uint64_t)FTB_LOST_BEFORE) & 0xffff;
}

static inline uint32_t ftb_len(const ftb_batch *b, uint32_t k)
{
    return ftb_meta_len(b->meta[k]);
}

static inline uint16_t ftb_slot(const ftb_batch *b, uint32_t k)
{
    return (uint16_t)(b->meta[k] >> 16);
}

static inline uint32_t ftb_stream_index(const ftb_batch *b, uint32_t k)
{
    return ftb_meta_stream(b->meta[k]);
}

/* Records from `from` on were added: take down how they differ from the first. Reductions without branches, so that they are
 * vectorised; where lengths are known to differ there is nothing more to learn. */
#define FTB_DIFFERENCES_AT_ONCE 32u
static inline void ftb_note_differences(ftb_batch *b, uint32_t from)
{
    for (uint32_t i = from; i < b->n && b->differ >> 32 == 0;) {
        const uint32_t stop = b->n - i < FTB_DIFFERENCES_AT_ONCE ? b->n : i + FTB_DIFFERENCES_AT_ONCE;
        uint64_t differ = 0;
        for (; i < stop; i++)
            differ |= b->meta[i] ^ b->meta[0];
        b->differ |= differ;
    }
}

static inline void ftb_batch_clear(ftb_batch *b)
{
    b->n = 0;
    b->differ = 0;
}

static inline int ftb_is_after_loss(const ftb_batch *b, uint32_t k)
{
    return (b->meta[k] & FTB_LOST_BEFORE) != 0;
}

typedef struct {
    uint64_t offset; /* in the file: segment offset plus place in the segment */
    uint64_t bytes;  /* that could not be used */
    uint32_t stream;
    uint32_t status;
} ftb_problem;

typedef struct {
    int64_t before; /* time of the stream's last record before the gap; INT64_MIN: none was seen */
    int64_t after;  /* time of the first record after it */
    int64_t count;  /* -1: unknown */
    uint32_t stream;
    uint32_t reserved;
} ftb_loss;

/* Memory that is not in use: the kernel has cleared it once, and need not again. May be shared by threads. All zero: empty. */
#define FTB_POOL_PLACES 512
#define FTB_POOL_MOST ((size_t)128 << 20) /* bytes kept */
typedef struct {
    uint8_t *data;
    size_t ready, capacity;
    uint8_t mapped; /* huge pages of its own; else malloc's */
} ftb_mapping;

typedef struct {
    volatile char busy; /* a lock */
    uint32_t n;
    size_t kept;
    ftb_mapping free[FTB_POOL_PLACES];
} ftb_pool;

/* Give all that is kept back to the system. */
void ftb_pool_empty(ftb_pool *pool);

/* A growable array; what a Python column owns in the end. */
typedef struct {
    uint8_t *data;
    size_t size;     /* bytes in use */
    size_t ready;    /* bytes that may be written now */
    size_t capacity; /* bytes allocated; those from ready on have not been touched yet */
    uint8_t mapped;  /* it is a mapping of huge pages; else malloc's */
    ftb_pool *pool;  /* where memory comes from and goes to; NULL: the system */
} ftb_column;

int ftb_column_reserve(ftb_column *column, size_t extra);
/* The same with a guess of the final size in bytes, so that a column is not moved as it grows; 0: no guess. */
int ftb_column_reserve_for(ftb_column *column, size_t extra, size_t expected);
int ftb_column_append(ftb_column *column, const void *bytes, size_t n);
/* Make it so many bytes long, with zeros where it grows. */
int ftb_column_extend(ftb_column *column, size_t size);
void ftb_column_trim(ftb_column *column);
void ftb_column_free(ftb_column *column);

/* Item `at` of a column of items of so many bytes, which grows as they are asked for, by zeros; NULL: no memory. */
static inline void *ftb_column_at(ftb_column *column, size_t at, size_t bytes)
{
    if (column->size < (at + 1) * bytes && ftb_column_extend(column, (at + 1) * bytes) != FTB_OK)
        return NULL;
    return column->data + at * bytes;
}

/* Which records are wanted. */
struct ftb_program;
typedef struct {
    const uint16_t *slot_of; /* FTB_N_IDS entries: event id -> slot, or FTB_NO_SLOT */
    uint8_t has_window;  /* keep start <= ts < end */
    uint8_t pid_width;   /* bytes of common_pid; 0: no pid filter */
    uint32_t pid_offset; /* of common_pid */
    int64_t start, end;
    const int32_t *pids; /* sorted */
    uint32_t n_pids;
    const struct ftb_program *const *filter_of_slot; /* where=, one per slot (NULL: keep all); NULL: no filter */
} ftb_select;

/* Sub-buffers that stand together in memory, and in the file (or came from there together). */
typedef struct {
    const uint8_t *data;
    size_t size;
    uint64_t file_offset;
} ftb_segment;

/* The walk over one CPU's sub-buffers. */
typedef struct {
    /* set by the caller */
    const ftb_abi *abi;
    const ftb_clock *clock; /* NULL: identity */
    const ftb_select *select; /* of its recording: event ids mean something in one recording only */
    uint32_t index;         /* position in the merge: ties in time go to the lower index */
    uint32_t cpu;
    uint32_t buffer;
    uint64_t *count_of_slot; /* where all records of the select's events are to be counted, and not handed on; NULL: they are wanted */
    uint8_t last_segment; /* no segment follows the current one */
    /* the current segment */
    const uint8_t *data;
    size_t size;
    uint64_t file_offset;
    uint64_t consumed; /* bytes of earlier segments */
    const ftb_segment *block; /* the segments that were given with it: those from next_in_block on follow */
    uint32_t n_block, next_in_block;
    /* state of the walk */
    size_t next_page;
    size_t page; /* start of the page that cur is in */
    const uint8_t *cur, *end;
    uint64_t ts;      /* raw, running */
    uint64_t data_ts; /* raw, of the last data record */
    uint8_t in_page, clipped, lost_pending, backwards;
    uint8_t varied; /* the last records were of various lengths */
    uint8_t rare;   /* and few of them wanted */
    int64_t last_ts; /* corrected, of the last data record; INT64_MIN before the first */
    /* what was seen */
    uint64_t pages, events, paddings, time_extends, time_stamps, missed_pages;
} ftb_stream;

/* Damage and losses are appended to these; one per page at the most (two with lost_count_cut). */
typedef struct {
    ftb_column problems; /* of ftb_problem */
    ftb_column losses;   /* of ftb_loss */
} ftb_report;

int ftb_report_problem(ftb_report *report, const ftb_stream *s, int status, size_t at, size_t bytes);

/* Give a stream its next segment. */
void ftb_stream_feed(ftb_stream *s, const uint8_t *data, size_t size, uint64_t file_offset, int last);

/* Give it several, which stay in memory until it needs a segment again. */
void ftb_stream_feed_block(ftb_stream *s, const ftb_segment *block, uint32_t n);

/* Go on to the next segment of the block; whether there is one. */
int ftb_stream_next_of_block(ftb_stream *s);

/* Where in the file a place in the stream's segments is. */
uint64_t ftb_stream_file_offset(const ftb_stream *s, const uint8_t *at);

/* Append wanted records to `out` until it is full (FTB_OK) or the segment is used up (FTB_NEED_SEGMENT). */
int ftb_scan(ftb_stream *s, const ftb_select *select, ftb_batch *out, ftb_report *report);

/* Corrected time of page `index` of a segment: its own, or the median with its neighbours, so that one damaged page misleads nobody. */
int64_t ftb_page_time(const ftb_abi *abi, const ftb_clock *clock, const uint8_t *data, size_t size, size_t index);
/* Index of the first page whose time is > ts; pages of a CPU are in time order. */
size_t ftb_find_page(const ftb_abi *abi, const ftb_clock *clock, const uint8_t *data, size_t size, int64_t ts);

/* Where records wait to be merged: those of one stream, or of two sources that were merged. */
typedef struct {
    ftb_batch *batch; /* caller's */
    uint32_t pos;     /* the first of the batch that still waits */
    uint32_t left, right;
    uint8_t done; /* nothing will come any more */
} ftb_source;

/* k-way merge by (ts, index): a tree of two-way merges. */
typedef struct {
    ftb_stream *streams;
    uint32_t n_streams;
    uint32_t need;       /* the stream that FTB_NEED_SEGMENT is about */
    ftb_source *sources; /* caller's, 2 * n_streams - 1: of the streams first, of all at the end, which needs no batch */
} ftb_merge;

/* Build the tree, once n_streams and sources are set. */
void ftb_merge_plant(ftb_merge *m);

/* Have the source's next record at hand, or know that there is none. */
int ftb_merge_have(ftb_merge *m, uint32_t source, ftb_report *report);

/* Records of all streams, each let through by its own stream's select. */
int ftb_merge_fill(ftb_merge *m, ftb_batch *out, ftb_report *report);

/* Strings and their codes. */
#define FTB_INTERN_NEAR 256
typedef struct {
    uint64_t low, high; /* a string of up to 16 bytes, with whatever follows its NUL */
    int64_t code;
    uint64_t unused; /* a power of two has its place without a multiplication */
} ftb_intern_entry;

typedef struct {
    ftb_column bytes;   /* the strings, one after another, each followed by a NUL */
    ftb_column offsets; /* uint64 start of each string, and one more: the end */
    uint64_t *table;    /* open addressing: hash << 32 | code + 1; 0: free */
    uint32_t mask;
    uint32_t n;
    /* Task names repeat: most are found here. Empty places hold what belongs to another place, and so is never looked for there. */
    ftb_intern_entry near[FTB_INTERN_NEAR];
} ftb_intern;

int ftb_intern_init(ftb_intern *in);
void ftb_intern_free(ftb_intern *in);
/* Code of a string, added when new; -1 when memory is out. */
int64_t ftb_intern_code(ftb_intern *in, const uint8_t *s, size_t n);

/* The place of sixteen bytes among those met lately. */
static inline ftb_intern_entry *ftb_intern_near(ftb_intern *in, uint64_t low, uint64_t high)
{
    return &in->near[((low + high) * 0x9e3779b97f4a7c15ULL) >> 56];
}

/* The same for a field of 16 bytes, a NUL-terminated (or full) string: TASK_COMM_LEN. */
int64_t ftb_intern_sixteen(ftb_intern *in, const uint8_t *s);

/* Plans: one op per column. */
typedef enum {
    FTB_OP_TS,       /* int64 */
    FTB_OP_CPU,      /* uint16 */
    FTB_OP_BUFFER,   /* uint16 */
    FTB_OP_SLOT,     /* uint16: which event */
    FTB_OP_ORDER,    /* int64: how many records of any event the decoder met before */
    FTB_OP_COMM,     /* int32 code by the pid at offset; where there is none, the pid + INT32_MIN */
    FTB_OP_SCALAR,   /* width bytes in and out; or 4 in and 8 out, unsigned: addresses of a 32-bit kernel */
    FTB_OP_FIXED,    /* size bytes: elements of width bytes, byte order corrected */
    FTB_OP_STRING,   /* int32 code into the op's dictionary */
    FTB_OP_LIST,     /* offsets (uint64) in column, elements in values */
    FTB_N_OPS
} ftb_opcode;

typedef enum { FTB_INLINE, FTB_DATA_LOC, FTB_REL_LOC, FTB_SHORT_LOC, FTB_TAIL, FTB_N_WHERE } ftb_where;

typedef struct {
    uint8_t op;
    uint8_t where;
    uint8_t width;     /* of one element in the record */
    uint8_t out_width; /* SCALAR: of one element in the column */
    uint8_t is_signed;
    uint8_t shift;         /* COMM, SCALAR of less than 8 bytes: where the value stands in the word at `word` */
    int32_t word;          /* offset of 8 bytes of the record that hold the value; both set by ftb_plan_check */
    uint32_t offset, size; /* TAIL: size tells where the number of elements stands, see ftb_count_at; 0: nowhere */
    size_t usual; /* bytes of the column when it was last taken: what the next will need, about */
    ftb_column column;
    ftb_column values;  /* LIST: the elements; COMM: not empty once a task without a code was met */
    ftb_intern *intern; /* STRING: its dictionary */
} ftb_op;

/* pid -> comm code, or -1; code 0 is "<...>". */
typedef struct {
    const int32_t *code_of_pid;
    uint32_t n_pids;
} ftb_comms;

typedef struct {
    ftb_op *ops;
    const ftb_comms *comms; /* of the plan's recording; NULL where no op is FTB_OP_COMM */
    uint32_t n_ops;
    uint32_t min_len; /* records shorter than this are reported and left out */
    uint8_t big_endian;
    uint64_t rows;
    uint64_t outside; /* dynamic fields that lay outside their record */
} ftb_plan;

/* Check every offset against the fixed length once, so that gathering needs one compare per record; choose the words that
 * narrow scalars are read by, as few as possible. */
int ftb_plan_check(ftb_plan *plan);
void ftb_plan_free(ftb_plan *plan);

/* A TAIL's size: bits 0 to 3 the width, the others the offset of an integer field with the number of its elements. */
static inline uint32_t ftb_count_width(const ftb_op *op)
{
    return op->size & 15;
}

static inline uint32_t ftb_count_at(const ftb_op *op)
{
    return op->size >> 4;
}

/* Bytes of a located field of a record; length 0 and *outside set when it is not inside the record. */
typedef struct {
    const uint8_t *data;
    uint32_t len;
} ftb_span;
ftb_span ftb_locate(const ftb_op *op, int big_endian, const uint8_t *data, uint32_t len, int *outside);

/* A SCALAR op's value of a record that is long enough, sign-extended where the field is signed. */
uint64_t ftb_read_scalar(const ftb_op *op, int big_endian, const uint8_t *data);

typedef struct {
    const ftb_stream *streams; /* for cpu and buffer */
    uint32_t n_streams;
    uint64_t total_bytes; /* of all streams, to guess final sizes from progress; 0: not known, or not to be guessed */
} ftb_gather_context;

/* Refs of one plan, none shorter than its min_len: part of a batch, or a group. */
typedef struct {
    const int64_t *ts;
    const uint8_t *const *data;
    const uint64_t *meta;
    const int64_t *order; /* of FTB_OP_ORDER; NULL: no plan has it */
    uint64_t differ; /* as in ftb_batch */
    uint32_t n;
} ftb_refs;

/* Where pages will be read next, as far behind a record: more than the walk itself looks ahead. */
#define FTB_AHEAD 18432

/* Append a row for each ref. */
int ftb_gather(ftb_plan *plan, const ftb_gather_context *context, const ftb_refs *refs);

/* Refs that wait for more of their plan: gathering some hundred at once costs far less a row than gathering a few. And always as
 * many as bring the plan's rows to a multiple of FTB_EVEN, so that every column grows by whole cache lines: storing past the cache
 * to a line in two parts costs as much as gathering a hundred rows. */
#define FTB_GROUP 256
#define FTB_EVEN 64
typedef struct {
    uint32_t n;
    uint32_t most; /* refs that it takes */
    int64_t ts[FTB_GROUP + FTB_APART];
    const uint8_t *data[FTB_GROUP + FTB_APART];
    uint64_t meta[FTB_GROUP + FTB_APART];
} ftb_group;

/* scan + merge + gather until memory for refs is used up, a stream needs a segment, or enough rows were made. */
typedef struct {
    ftb_merge merge;
    ftb_report report;
    ftb_gather_context context;
    const uint16_t *plan_of_slot; /* several slots may share a plan */
    uint64_t *count_of_slot;
    ftb_plan *plans;
    uint32_t n_plans;
    ftb_group **groups; /* one per plan, all empty between calls */
    int64_t *orders;   /* FTB_GROUP per plan, of the refs in its group; NULL: no plan has FTB_OP_ORDER */
    int64_t met;       /* records of earlier batches */
    ftb_batch *batch;
    uint32_t at;      /* the first of the batch that still waits */
    int filled;       /* what came of filling the batch */
    uint8_t woven;    /* so many batches of several kinds of records came one after another, up to a few */
    uint8_t choosy;   /* some records are left out */
    uint8_t meets;    /* plans may be added: see FTB_NEED_PLAN */
    uint16_t new_slot;
} ftb_decoder;

/* FTB_NEED_PLAN: the next record is of `new_slot`, whose entry of plan_of_slot is FTB_NEW_PLAN; the caller sets it, and goes on. */
int ftb_decode(ftb_decoder *d, uint64_t max_records);

/* Sub-buffers in, sub-buffers out: of one CPU, with the wanted records only. */
typedef struct {
    uint8_t any;
    int64_t count; /* -1: unknown */
} ftb_repack_loss;

typedef struct {
    /* set by the caller */
    ftb_stream stream; /* abi, clock; fed with ftb_stream_feed */
    ftb_select select; /* which records; a slot only says that an event is wanted */
    uint8_t *page;     /* the page being built: page_size bytes */
    size_t page_size;  /* of the pages made: not less than the abi's */
    /* what comes out */
    ftb_column out; /* whole pages */
    ftb_report report;
    uint64_t records, copied, rebuilt;
    /* state */
    uint64_t base, ts; /* raw: of the page being built, and of its last record */
    size_t used;
    uint8_t building;
    ftb_repack_loss page_loss; /* what was lost before the page being built */
    ftb_repack_loss loss;      /* and before the next record that is kept */
} ftb_repack;

/* Go on for max_pages pages (FTB_OK: there are more) or to the end of the segment (FTB_NEED_SEGMENT). */
int ftb_repack_pages(ftb_repack *r, uint32_t max_pages);
/* Put out the page being built. */
int ftb_repack_flush(ftb_repack *r);

#endif
