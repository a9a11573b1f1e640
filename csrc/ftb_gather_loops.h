/* One tight loop per field: record refs -> a column. Space is reserved first, so that the loops cannot fail
 * (strings and lists, whose size is known only on the way, are the exception).
 *
 * Compiled twice: by ftb_gather.c for every CPU, and by ftb_gather_wide.c for those with wider vectors. */
#ifndef FTB_GATHER_LOOPS_H
#define FTB_GATHER_LOOPS_H

#include "ftb_inline.h"
#include "ftbuf.h"

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

#ifndef FTB_WIDE_H /* which has these for CPUs that can */
static inline int stream_lines(uint8_t *to, const uint8_t *from, size_t bytes)
{
    (void)to, (void)from, (void)bytes;
    return 0;
}

static inline uint32_t codes_of_pids(const ftb_comms *comms, const uint32_t *pids, uint32_t n, int32_t *out, int32_t *all)
{
    (void)comms, (void)pids, (void)n, (void)out, (void)all;
    return 0;
}

static inline int stream_narrow(uint8_t *to, const uint64_t *words, uint32_t n, const ftb_op *op)
{
    (void)to, (void)words, (void)n, (void)op;
    return 0;
}
#endif

/* Columns this large will not be read again while they are in cache: stores that go past the cache spare reading each line first. */
#define FTB_STREAM_FROM ((size_t)1 << 20)

/* Copy to memory without bringing its lines into cache. */
static void ftb_stream_out(uint8_t *to, const uint8_t *from, size_t n)
{
    if (stream_lines(to, from, n))
        return;
#if defined(__SSE2__)
    size_t head = (size_t)(-(uintptr_t)to & 15);
    if (n >= 64 + head) {
        memcpy(to, from, head);
        to += head, from += head, n -= head;
        __m128i *out = (__m128i *)(void *)to;
        const __m128i *in = (const __m128i *)(const void *)from;
        size_t lines = n / 64;
        for (size_t i = 0; i < 4 * lines; i += 4) {
            __m128i a = _mm_loadu_si128(in + i), b = _mm_loadu_si128(in + i + 1);
            __m128i c = _mm_loadu_si128(in + i + 2), d = _mm_loadu_si128(in + i + 3);
            _mm_stream_si128(out + i, a);
            _mm_stream_si128(out + i + 1, b);
            _mm_stream_si128(out + i + 2, c);
            _mm_stream_si128(out + i + 3, d);
        }
        to += 64 * lines, from += 64 * lines, n -= 64 * lines;
    }
#endif
    memcpy(to, from, n);
}

/* The rows of one call. The word that was read last is kept: neighbouring narrow fields share one; and so are the codes of names. */
typedef struct {
    ftb_plan *plan;
    const ftb_gather_context *context;
    const ftb_refs *refs;
    int64_t word;      /* offset of `words` in the record, or NO_WORD */
    int64_t pids_from; /* offset of `pids` in the record, or NO_WORD */
    uint64_t *words;
    uint32_t *pids;
    const ftb_op *named; /* whose names have the codes; NULL: none yet */
    int32_t *codes;
} rows;

#define NO_WORD INT64_MIN

static const ftb_stream *stream_of(const rows *r, uint32_t i)
{
    return &r->context->streams[ftb_meta_stream(r->refs->meta[i])];
}

/* ---- header columns ---- */

/* The stream that all rows come from, or NULL: with few CPUs running, and with one always, a constant is all it takes. */
static const ftb_stream *common_stream(const rows *r)
{
    return (uint16_t)r->refs->differ & ~FTB_LOST_BEFORE ? NULL : stream_of(r, 0);
}

static void fill(uint16_t *out, uint32_t n, uint16_t value)
{
    for (uint32_t i = 0; i < n; i++)
        out[i] = value;
}

static uint16_t cpu_of(const ftb_stream *s)
{
    return (uint16_t)s->cpu;
}

static uint16_t buffer_of(const ftb_stream *s)
{
    return (uint16_t)s->buffer;
}

/* What the rows' streams are: inlined for each `of`. */
FTB_ALWAYS_INLINE void gather_of_streams(const rows *r, uint16_t (*of)(const ftb_stream *), uint16_t *out)
{
    const ftb_stream *only = common_stream(r);
    if (only != NULL)
        fill(out, r->refs->n, of(only));
    else
        for (uint32_t i = 0; i < r->refs->n; i++)
            out[i] = of(stream_of(r, i));
}

static void gather_slot(const rows *r, uint16_t *out)
{
    for (uint32_t i = 0; i < r->refs->n; i++)
        out[i] = (uint16_t)(r->refs->meta[i] >> 16);
}

/* ---- scalars: words of 8 bytes first, then what is narrower out of them ---- */

#if defined(__SSE2__)
FTB_ALWAYS_INLINE __m128i word_pair(const uint8_t *first, const uint8_t *second)
{
    __m128i pair = _mm_loadl_epi64((const __m128i *)(const void *)first);
    return _mm_castpd_si128(_mm_loadh_pd(_mm_castsi128_pd(pair), (const double *)(const void *)second));
}
#endif

/* Two words a store where the host can: stores are what limits this loop. `past_cache`: as ftb_stream_out. */
static void load_words(const ftb_refs *refs, int64_t offset, int big, uint64_t *out, int past_cache)
{
    const uint8_t *const *data = refs->data;
    uint32_t i = 0;
#if defined(__SSE2__)
    if (((uintptr_t)out & 15) != 0 && refs->n > 0) {
        out[0] = ftb_load64(data[0] + offset, big);
        i = 1;
    }
    if (past_cache)
        for (; !big && i + 2 <= refs->n; i += 2)
            _mm_stream_si128((__m128i *)(void *)(out + i), word_pair(data[i] + offset, data[i + 1] + offset));
    else
        for (; !big && i + 2 <= refs->n; i += 2)
            _mm_store_si128((__m128i *)(void *)(out + i), word_pair(data[i] + offset, data[i + 1] + offset));
#else
    (void)past_cache;
#endif
    for (; i < refs->n; i++)
        out[i] = ftb_load64(data[i] + offset, big);
}

static const uint64_t *words_of(rows *r, const ftb_op *op)
{
    if (r->word != op->word)
        load_words(r->refs, op->word, r->plan->big_endian, r->words, 0);
    r->word = op->word;
    return r->words;
}

#define NARROW_LOOP(in_type, out_type)                                           \
    do {                                                                         \
        out_type *out = (out_type *)(void *)to;                                  \
        for (uint32_t i = 0; i < n; i++)                                         \
            out[i] = (in_type)(words[i] >> shift);                               \
    } while (0)

/* Values narrower than their words into a column. */
static void narrow(const uint64_t *words, uint32_t n, const ftb_op *op, uint8_t *to)
{
    const uint32_t shift = op->shift;
    switch (op->width) {
    case 1: NARROW_LOOP(uint8_t, uint8_t); break;
    case 2: NARROW_LOOP(uint16_t, uint16_t); break;
    default:
        if (op->out_width == 4)
            NARROW_LOOP(uint32_t, uint32_t);
        else
            NARROW_LOOP(uint32_t, uint64_t);
    }
}

/* ---- names of tasks, by their pids ---- */

/* The pid itself, marked by its sign, of a task whose name is not in the table; what is no pid has the code of no name. */
FTB_ALWAYS_INLINE int32_t unnamed(uint32_t pid)
{
    return pid <= INT32_MAX ? (int32_t)((int64_t)pid + INT32_MIN) : 0;
}

#define PID_WIDTH 4

/* The rows' pids, taken out of their words once for the pid column and for the names. */
static const uint32_t *pids_of(rows *r, const ftb_op *op)
{
    if (r->pids_from != op->offset) {
        const ftb_op pid = {.width = PID_WIDTH, .out_width = PID_WIDTH, .shift = op->shift};
        narrow(words_of(r, op), r->refs->n, &pid, (uint8_t *)r->pids);
        r->pids_from = op->offset;
    }
    return r->pids;
}

static int32_t comm_code(const ftb_comms *comms, uint32_t pid)
{
    int32_t code = pid < comms->n_pids ? comms->code_of_pid[pid] : -1;
    return code >= 0 ? code : unnamed(pid);
}

#define PIDS_AT_ONCE 32

/* A task's events come in runs: a block with one pid is filled, not looked up. Returns all codes, or'd: negative if one is. */
static int32_t comm_block(const ftb_comms *comms, const uint32_t *pids, int32_t *out, uint32_t n)
{
    uint32_t differ = 0;
    int32_t all = comm_code(comms, pids[0]);
    for (uint32_t i = 0; i < n; i++)
        differ |= pids[i] ^ pids[0];
    if (differ == 0) {
        const int32_t code = all;
        for (uint32_t i = 0; i < n; i++)
            out[i] = code;
    } else {
        for (uint32_t i = codes_of_pids(comms, pids, n, out, &all); i < n; i++)
            all |= out[i] = comm_code(comms, pids[i]);
    }
    return all;
}

/* Pids of other widths than a pid_t's: no kernel has them, but a format may say so. */
static int32_t comms_of_odd_pids(const rows *r, const ftb_op *op, int32_t *out)
{
    int32_t all = 0;
    for (uint32_t i = 0; i < r->refs->n; i++) {
        uint64_t pid = ftb_load(r->refs->data[i] + op->offset, op->width, r->plan->big_endian);
        all |= out[i] = comm_code(r->plan->comms, (uint32_t)pid);
    }
    return all;
}

static int gather_comm(rows *r, ftb_op *op, int32_t *out)
{
    int32_t all = 0;
    if (op->width == PID_WIDTH) {
        const uint32_t *pids = pids_of(r, op), n = r->refs->n;
        for (uint32_t i = 0; i < n; i += PIDS_AT_ONCE)
            all |= comm_block(r->plan->comms, pids + i, out + i, n - i < PIDS_AT_ONCE ? n - i : PIDS_AT_ONCE);
    } else {
        all = comms_of_odd_pids(r, op, out);
    }
    const uint8_t mark = 1;
    return all < 0 && op->values.size == 0 ? ftb_column_append(&op->values, &mark, sizeof mark) : FTB_OK;
}

/* ---- arrays, strings, lists ---- */

static void copy_elements(uint8_t *to, const uint8_t *from, size_t bytes, uint32_t width, int swap)
{
    if (!swap || width == 1) {
        memcpy(to, from, bytes);
        return;
    }
    for (size_t at = 0; at < bytes; at += width)
        for (uint32_t b = 0; b < width; b++)
            to[at + b] = from[at + width - 1 - b];
}

static void gather_fixed(const rows *r, const ftb_op *op, uint8_t *to)
{
    const int swap = r->plan->big_endian != FTB_HOST_BIG;
    for (uint32_t i = 0; i < r->refs->n; i++)
        copy_elements(to + (size_t)i * op->size, r->refs->data[i] + op->offset, op->size, op->width, swap);
}

/* Whether an array's rows are pieces of sixteen bytes that need no other order: arguments of system calls, addresses. */
static int is_sixteens(const rows *r, const ftb_op *op, const uint8_t *to)
{
    return op->op == FTB_OP_FIXED && op->size % 16 == 0 && ((uintptr_t)to & 15) == 0 &&
           (op->width == 1 || r->plan->big_endian == FTB_HOST_BIG);
}

/* A row at a time, without a call for each; `pieces` is a constant where that is worth it. */
FTB_ALWAYS_INLINE void copy_sixteens(const ftb_refs *refs, uint32_t offset, uint8_t *to, int past_cache, size_t pieces)
{
#if defined(__SSE2__)
    __m128i *out = (__m128i *)(void *)to;
    for (uint32_t i = 0; i < refs->n; i++) {
        const __m128i *from = (const __m128i *)(const void *)(refs->data[i] + offset);
        for (size_t k = 0; k < pieces; k++, out++)
            if (past_cache)
                _mm_stream_si128(out, _mm_loadu_si128(from + k));
            else
                _mm_store_si128(out, _mm_loadu_si128(from + k));
    }
#else
    (void)past_cache;
    for (uint32_t i = 0; i < refs->n; i++)
        memcpy(to + 16 * pieces * i, refs->data[i] + offset, 16 * pieces);
#endif
}

static void gather_sixteens(const ftb_refs *refs, const ftb_op *op, uint8_t *to, int past_cache)
{
    switch (op->size / 16) {
    case 1: copy_sixteens(refs, op->offset, to, past_cache, 1); break;
    case 3: copy_sixteens(refs, op->offset, to, past_cache, 3); break; /* the six arguments of a system call */
    default: copy_sixteens(refs, op->offset, to, past_cache, op->size / 16);
    }
}

static ftb_span locate(const rows *r, const ftb_op *op, uint32_t i)
{
    int outside = 0;
    ftb_span span = ftb_locate(op, r->plan->big_endian, r->refs->data[i], ftb_meta_len(r->refs->meta[i]), &outside);
    r->plan->outside += (uint64_t)outside;
    return span;
}

#define COMM_LEN 16 /* K:include/linux/sched.h TASK_COMM_LEN */

/* The same sixteen bytes are the same name, whatever follows its NUL: most are found among those met lately as they are. */
static int look_up_comms(const ftb_refs *refs, const ftb_op *op, int32_t *out, uint32_t from, uint32_t to)
{
    ftb_intern *in = op->intern;
    const uint8_t *const *data = refs->data;
    const uint32_t offset = op->offset;
    for (uint32_t i = from; i < to; i++) {
        const uint8_t *s = data[i] + offset;
        const uint64_t low = ftb_load64(s, 0), high = ftb_load64(s + 8, 0);
        const ftb_intern_entry *entry = ftb_intern_near(in, low, high);
        if (FTB_UNLIKELY(((entry->low ^ low) | (entry->high ^ high)) != 0)) {
            if (ftb_intern_sixteen(in, s) < 0)
                return FTB_NO_MEMORY;
            entry = ftb_intern_near(in, low, high); /* where it is now */
        }
        out[i] = (int32_t)entry->code;
    }
    return FTB_OK;
}

#define COMMS_AT_ONCE 8
#define UNLIKE_MOST 2 /* so many blocks that do not follow, and those of a group are no longer tried */

/* Whether names of rows from i on are what other names of the next rows are. */
static int are_next_comms(const ftb_refs *refs, uint32_t offset, uint32_t other, uint32_t i)
{
    const uint8_t *const *data = refs->data + i;
#if defined(__SSE2__)
    __m128i same = _mm_set1_epi8(-1);
    for (uint32_t k = 0; k < COMMS_AT_ONCE; k++) {
        const __m128i own = _mm_loadu_si128((const __m128i *)(const void *)(data[k] + offset));
        const __m128i next = _mm_loadu_si128((const __m128i *)(const void *)(data[k + 1] + other));
        same = _mm_and_si128(same, _mm_cmpeq_epi8(own, next));
    }
    return _mm_movemask_epi8(same) == 0xffff;
#else
    for (uint32_t k = 0; k < COMMS_AT_ONCE; k++)
        if (memcmp(data[k] + offset, data[k + 1] + other, COMM_LEN) != 0)
            return 0;
    return 1;
#endif
}

/* Names of tasks. Who comes next on a CPU is who goes in the next record: where rows are of one CPU, that costs a quarter of a search. */
static int gather_comms(rows *r, const ftb_op *op, int32_t *out)
{
    const ftb_refs *refs = r->refs;
    uint32_t i = 0, unlike = r->named != NULL && r->named->intern == op->intern ? 0 : UNLIKE_MOST;
    for (; unlike < UNLIKE_MOST && i + COMMS_AT_ONCE < refs->n; i += COMMS_AT_ONCE)
        if (are_next_comms(refs, op->offset, r->named->offset, i))
            memcpy(out + i, r->codes + i + 1, COMMS_AT_ONCE * sizeof *out);
        else if (unlike++, look_up_comms(refs, op, out, i, i + COMMS_AT_ONCE) != FTB_OK)
            return FTB_NO_MEMORY;
    if (look_up_comms(refs, op, out, i, refs->n) != FTB_OK)
        return FTB_NO_MEMORY;
    memcpy(r->codes, out, refs->n * sizeof *out);
    r->named = op;
    return FTB_OK;
}

static int gather_strings(rows *r, const ftb_op *op, int32_t *out)
{
    if (op->where == FTB_INLINE && op->size == COMM_LEN)
        return gather_comms(r, op, out);
    for (uint32_t i = 0; i < r->refs->n; i++) {
        ftb_span span = locate(r, op, i);
        const uint8_t *nul = span.len > 0 ? memchr(span.data, 0, span.len) : NULL;
        int64_t code = ftb_intern_code(op->intern, span.data, nul != NULL ? (size_t)(nul - span.data) : span.len);
        if (code < 0)
            return FTB_NO_MEMORY;
        out[i] = (int32_t)code;
    }
    return FTB_OK;
}

/* Offsets count elements and stand one per row: where the row's elements end. */
static int gather_lists(const rows *r, ftb_op *op, uint64_t *out)
{
    const int swap = r->plan->big_endian != FTB_HOST_BIG;
    for (uint32_t i = 0; i < r->refs->n; i++) {
        ftb_span span = locate(r, op, i);
        size_t bytes = span.len - span.len % op->width;
        if (ftb_column_reserve(&op->values, bytes) != FTB_OK)
            return FTB_NO_MEMORY;
        if (bytes > 0)
            copy_elements(op->values.data + op->values.size, span.data, bytes, op->width, swap);
        op->values.size += bytes;
        out[i] = op->values.size / op->width;
    }
    return FTB_OK;
}

static int gather_order(const rows *r, int64_t *out)
{
    if (r->refs->order == NULL)
        return FTB_BAD_PLAN;
    memcpy(out, r->refs->order, r->refs->n * sizeof *out);
    return FTB_OK;
}

static size_t out_bytes(const ftb_op *op)
{
    switch (op->op) {
    case FTB_OP_TS:
    case FTB_OP_ORDER:
    case FTB_OP_LIST: return 8;
    case FTB_OP_CPU:
    case FTB_OP_BUFFER:
    case FTB_OP_SLOT: return 2;
    case FTB_OP_SCALAR: return op->out_width;
    case FTB_OP_FIXED: return op->size;
    default: return 4;
    }
}

/* So many rows tell how many there will be: early, since growing a column costs more than a guess that is too high, but not before
 * the refs that wait in groups are few beside them. */
#define GUESS_FROM (16 * FTB_GROUP) /* for each place where refs wait: the streams, and where they were merged */

/* Final size of a column, guessed from the last one or from how far its streams have been read; 0 while it is too early to tell. */
static size_t expected_bytes(const rows *r, const ftb_op *op, size_t coming)
{
    double consumed = 0, total = (double)r->context->total_bytes;
    if (op->usual > 0)
        return op->usual;
    for (uint32_t i = 0; i < r->context->n_streams; i++)
        consumed += (double)r->context->streams[i].consumed + (double)r->context->streams[i].next_page;
    if ((r->plan->rows < GUESS_FROM * ((uint64_t)r->context->n_streams + 1) && consumed * 64 < total) || consumed > total)
        return 0;
    double expected = ((double)op->column.size + (double)coming) * (total / consumed);
    return expected < (double)SIZE_MAX / 4 ? (size_t)expected : 0;
}

/* One op's values of all rows. */
static int gather_values(rows *r, ftb_op *op, void *to)
{
    switch (op->op) {
    case FTB_OP_CPU: gather_of_streams(r, cpu_of, to); return FTB_OK;
    case FTB_OP_BUFFER: gather_of_streams(r, buffer_of, to); return FTB_OK;
    case FTB_OP_SLOT: gather_slot(r, to); return FTB_OK;
    case FTB_OP_ORDER: return gather_order(r, to);
    case FTB_OP_COMM: return gather_comm(r, op, to);
    case FTB_OP_SCALAR: narrow(words_of(r, op), r->refs->n, op, to); return FTB_OK;
    case FTB_OP_FIXED: gather_fixed(r, op, to); return FTB_OK;
    case FTB_OP_STRING: return gather_strings(r, op, to);
    case FTB_OP_LIST: return gather_lists(r, op, to);
    default: return FTB_BAD_PLAN;
    }
}

/* Past the cache, by way of a buffer in it: but for what can be stored there at once. */
static int gather_past_cache(rows *r, ftb_op *op, uint8_t *to, size_t bytes)
{
    _Alignas(64) uint8_t gathered[FTB_GROUP * sizeof(uint64_t)];
    if (op->op == FTB_OP_SCALAR && stream_narrow(to, words_of(r, op), r->refs->n, op))
        return FTB_OK;
    if (bytes > sizeof gathered)
        return gather_values(r, op, to);
    int status = gather_values(r, op, gathered);
    if (status == FTB_OK)
        ftb_stream_out(to, gathered, bytes);
    return status;
}

static int gather_to(rows *r, ftb_op *op, uint8_t *to, size_t bytes)
{
    const int past_cache = op->column.capacity >= FTB_STREAM_FROM;
    if (op->op == FTB_OP_SCALAR && op->width == 8)
        load_words(r->refs, op->offset, r->plan->big_endian, (uint64_t *)(void *)to, past_cache);
    else if (op->op == FTB_OP_TS && past_cache)
        ftb_stream_out(to, (const uint8_t *)r->refs->ts, bytes);
    else if (op->op == FTB_OP_TS)
        memcpy(to, r->refs->ts, bytes);
    else if (is_sixteens(r, op, to))
        gather_sixteens(r->refs, op, to, past_cache);
    else
        return past_cache ? gather_past_cache(r, op, to, bytes) : gather_values(r, op, to);
    return FTB_OK;
}

static int gather_op(rows *r, ftb_op *op)
{
    size_t bytes;
    if (ftb_mul_overflows(out_bytes(op), r->refs->n, &bytes))
        return FTB_NO_MEMORY;
    if (bytes > op->column.ready - op->column.size &&
        ftb_column_reserve_for(&op->column, bytes, expected_bytes(r, op, bytes)) != FTB_OK)
        return FTB_NO_MEMORY;
    int status = gather_to(r, op, op->column.data + op->column.size, bytes);
    op->column.size += status == FTB_OK ? bytes : 0;
    return status;
}

#define BURST_FROM 8192u /* bytes of records: so much the walk asks of memory in one go without waiting */
#define BURST_MOST 65536u

/* Bytes of the pages that a run of large records takes; 0: they do not stand one behind another, or the walk can do without help. */
static size_t burst_of(const ftb_refs *refs)
{
    const size_t span = (size_t)((uintptr_t)refs->data[refs->n - 1] - (uintptr_t)refs->data[0]);
    return refs->differ == 0 && span >= BURST_FROM && span <= BURST_MOST ? span : 0;
}

/* The walk would wait for the pages of the next batch, while memory idles during the gathering of this one: some lines a column. */
static void bring_nearer(const ftb_refs *refs, size_t burst, uint32_t part, uint32_t parts)
{
    const uint8_t *from = refs->data[0] + FTB_AHEAD;
    for (size_t at = burst * part / parts; at < burst * (part + 1) / parts; at += FTB_LINE)
        __builtin_prefetch(from + at, 0, 1);
}

static inline int gather_all(ftb_plan *plan, const ftb_gather_context *context, const ftb_refs *refs)
{
    _Alignas(64) uint64_t words[FTB_GROUP];
    uint32_t pids[FTB_GROUP];
    int32_t codes[FTB_GROUP];
    rows r = {plan, context, refs, NO_WORD, NO_WORD, words, pids, NULL, codes};
    const size_t burst = burst_of(refs);
    for (uint32_t i = 0; i < plan->n_ops; i++) {
        if (burst > 0)
            bring_nearer(refs, burst, i, plan->n_ops);
        int status = gather_op(&r, &plan->ops[i]);
        if (status != FTB_OK)
            return status;
    }
    plan->rows += refs->n;
    return FTB_OK;
}

#endif
