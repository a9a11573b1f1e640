/* Lines of plain layouts: prefix columns and the body's program, record after record. */
#include "ftb_line.h"

#include "ftb_emit.h"

#define NS_PER_S 1000000000ull
#define US_PER_S 1000000ull
#define FTB_PROC_COMM 7 /* characters of a task's name in a graph */

/* One record, with what most columns need. */
typedef struct {
    const ftb_line_plan *plan;
    ftb_line_state *state;
    ftb_text_context *context;
    const ftb_stream *streams;
    uint32_t slot;
    uint32_t stream;
    const ftb_program *body;
    const uint8_t *body_data; /* what the body is about: a record, or the return of a call */
    uint32_t body_len;
    int32_t pid;
    uint64_t ts, next; /* next: time of the record after, in plans that need it */
    uint8_t flags, preempt;
} line;

static uint64_t common(const ftb_line_plan *plan, ftb_place place, const uint8_t *data, uint32_t len)
{
    if (place.width == 0 || len < place.width || len - place.width < place.offset)
        return 0;
    return ftb_load(data + place.offset, place.width, plan->big_endian);
}

static ftb_piece comm_of(const ftb_line_plan *plan, int32_t pid)
{
    uint32_t code = pid >= 0 && (uint32_t)pid < plan->n_pids ? (uint32_t)plan->code_of_pid[pid] : 0;
    return plan->comms[code];
}

/* ---- columns: each writes at p, where plan->room bytes are free, and returns where it ended ---- */

/* Texts have FTB_SLACK bytes behind them: a short piece is copied as one block. */
FTB_ALWAYS_INLINE char *copy(char *p, const char *s, size_t n)
{
    memcpy(p, s, FTB_SLACK);
    if (FTB_UNLIKELY(n > FTB_SLACK))
        memcpy(p + FTB_SLACK, s + FTB_SLACK, n - FTB_SLACK);
    return p + n;
}

FTB_ALWAYS_INLINE char *blanks(char *p, size_t n)
{
    for (size_t at = 0; at < n; at += 8)
        memset(p + at, ' ', 8);
    return p + n;
}

FTB_ALWAYS_INLINE char *copy_piece(char *p, const ftb_line_plan *plan, ftb_piece piece)
{
    return copy(p, plan->texts + piece.offset, piece.size);
}

#define DIGITS 20

/* How many decimal digits a value has. */
static size_t decimal_size(uint64_t value)
{
    char digits[FTB_NUMBER_ROOM];
    return (size_t)(ftb_decimal(digits, value) - digits);
}

/* A number that is filled on the left up to a width. */
static char *put_right(char *p, uint64_t value, size_t width, char fill)
{
    for (size_t n = decimal_size(value); n < width; width--)
        *p++ = fill;
    return ftb_decimal(p, value);
}

/* A number that is filled with blanks on the right. */
static char *put_left(char *p, uint64_t value, size_t width)
{
    char *end = ftb_decimal(p, value);
    size_t n = (size_t)(end - p);
    return n < width ? blanks(end, width - n) : end;
}

static uint64_t rounded_us(uint64_t ns)
{
    return (ns + 500) / 1000; /* times are below 2^63 */
}

FTB_ALWAYS_INLINE char *put_seconds(char *p, uint64_t value, uint64_t per_second, size_t decimals, size_t width)
{
    p = put_right(p, value / per_second, width, ' ');
    *p++ = '.';
    return put_right(p, value % per_second, decimals, '0');
}

/* Six digits of a value below 10^6. */
FTB_ALWAYS_INLINE char *put_six(char *p, uint32_t value)
{
    ftb_store_eight(p, (ftb_eight_digits(value) + FTB_ASCII_ZEROS) >> 16);
    return p + 6;
}

/* The seconds of a time and a dot: those of the line before, mostly. A plan has one column of them. */
static char *put_whole(char *p, ftb_line_state *state, uint64_t second, size_t width)
{
    if (FTB_UNLIKELY(width > FTB_LINE_SECONDS - DIGITS)) {
        p = put_right(p, second, width, ' ');
        *p++ = '.';
        return p;
    }
    if (FTB_UNLIKELY(state->seconds_size == 0 || state->second != second)) {
        char *end = put_right(state->seconds, second, width, ' ');
        *end++ = '.';
        state->seconds_size = (uint32_t)(end - state->seconds);
        state->second = second;
    }
    return copy(p, state->seconds, state->seconds_size);
}

/* Seconds and microseconds; no division where the second is that of the line before. */
FTB_ALWAYS_INLINE char *put_time_us(char *p, ftb_line_state *state, uint64_t us, size_t width)
{
    uint64_t rest = us - state->second * US_PER_S, second = state->second;
    if (FTB_UNLIKELY(rest >= US_PER_S)) {
        second = us / US_PER_S;
        rest = us - second * US_PER_S;
    }
    return put_six(put_whole(p, state, second, width), (uint32_t)rest);
}

static char *put_difference(char *p, const line *l, int64_t difference, size_t width)
{
    char *start = p;
    if (l->state->index > 0) {
        *p++ = '(';
        *p++ = '+'; /* also before a negative one, as trace-cmd does */
        if (difference < 0)
            *p++ = '-';
        p = put_right(p, difference < 0 ? 0 - (uint64_t)difference : (uint64_t)difference, 0, ' ');
        *p++ = ')';
    }
    size_t n = (size_t)(p - start);
    return n < width ? blanks(p, width - n) : p;
}

static char *put_tgid(char *p, const line *l)
{
    int32_t tgid = (uint32_t)l->pid < l->plan->n_tgids ? l->plan->tgid_of_pid[l->pid] : 0;
    if (tgid > 0)
        return put_right(p, (uint64_t)tgid, 7, ' ');
    memcpy(p, "-------", 7);
    return p + 7;
}

static char *put_comm(char *p, const line *l, const ftb_line_column *c)
{
    size_t n = l->context->comm_size;
    if (c->op == FTB_LINE_COMM_CUT && n > c->width)
        n = c->width;
    if (n < c->width)
        p = blanks(p, c->width - n);
    return copy(p, l->context->comm, n);
}

/* A hexadecimal number that is filled with zeros up to a width. */
static char *put_hex(char *p, uint64_t value, size_t width)
{
    char digits[FTB_NUMBER_ROOM];
    size_t n = (size_t)(ftb_hex(digits, value) - digits);
    for (; n < width; width--)
        *p++ = '0';
    return ftb_hex(p, value);
}

/* What makes a long time stand out (K:trace_output.c mark). */
static char mark_of(uint64_t us)
{
    static const struct {
        uint64_t more_than;
        char mark;
    } marks[] = {{1000000, '$'}, {100000, '@'}, {10000, '*'}, {1000, '#'}, {100, '!'}, {10, '+'}};
    for (size_t i = 0; i < sizeof marks / sizeof *marks; i++)
        if (us > marks[i].more_than)
            return marks[i].mark;
    return ' ';
}

static char *put_time(char *p, const line *l, const ftb_line_column *c)
{
    uint64_t since = l->ts - (uint64_t)l->plan->start, previous = (uint64_t)l->state->previous, wait = l->next - l->ts;
    switch (c->op) {
    case FTB_LINE_TIME_NS: {
        uint64_t second = l->ts / NS_PER_S;
        return put_right(put_whole(p, l->state, second, c->width), l->ts - second * NS_PER_S, 9, '0');
    }
    case FTB_LINE_TIME_RAW: return put_right(p, l->ts, c->width, ' ');
    case FTB_LINE_REL_US: return put_right(p, rounded_us(since), c->width, ' ');
    case FTB_LINE_REL_MS: return put_seconds(p, rounded_us(since), 1000, 3, 0);
    case FTB_LINE_TIME_HEX: return put_hex(p, l->ts, 16);
    case FTB_LINE_TIME_US_HEX: return put_hex(p, rounded_us(l->ts), c->width);
    case FTB_LINE_TIME_US_CUT: return put_time_us(p, l->state, l->ts / 1000, c->width);
    case FTB_LINE_NEXT_MS: return put_seconds(p, rounded_us(wait), 1000, 3, 0);
    case FTB_LINE_NEXT_RAW: return put_right(p, wait, 0, ' ');
    case FTB_LINE_NEXT_MARK: *p = mark_of(rounded_us(wait)); return p + 1;
    case FTB_LINE_DIFF: return put_difference(p, l, (int64_t)(l->ts - previous), c->width);
    default: return put_difference(p, l, (int64_t)(rounded_us(l->ts) - rounded_us(previous)), c->width);
    }
}

/* Task and pid, centred (K:trace_functions_graph.c print_graph_proc). */
static char *put_proc(char *p, const line *l, const ftb_line_column *c)
{
    char name[FTB_PROC_COMM + 1 + FTB_NUMBER_ROOM];
    size_t n = l->context->comm_size < FTB_PROC_COMM ? l->context->comm_size : FTB_PROC_COMM;
    memcpy(name, l->context->comm, n);
    name[n] = '-';
    n = (size_t)(ftb_decimal(name + n + 1, (uint64_t)l->pid) - name);
    size_t spare = n < c->width ? c->width - n : 0;
    p = blanks(p, spare / 2);
    memcpy(p, name, n);
    return blanks(p + n, spare - spare / 2);
}

static char *put_buffer(char *p, const line *l)
{
    uint32_t buffer = l->streams[l->stream].buffer;
    return buffer < l->plan->n_labels ? copy_piece(p, l->plan, l->plan->labels[buffer]) : p;
}

/* Blanks before what happens inside of calls. */
static char *put_indent(char *p, const line *l)
{
    int64_t depth = l->state->cpus[l->stream].depth;
    return depth > 0 ? blanks(p, 2 * ((size_t)depth + 1)) : p;
}

static char *put_column(char *p, const line *l, const ftb_line_column *c)
{
    const ftb_line_plan *plan = l->plan;
    switch (c->op) {
    case FTB_LINE_TEXT: return copy_piece(p, plan, c->text);
    case FTB_LINE_COMM:
    case FTB_LINE_COMM_CUT: return put_comm(p, l, c);
    case FTB_LINE_PID: return put_left(p, (uint64_t)l->pid, c->width);
    case FTB_LINE_PID_RIGHT:
    case FTB_LINE_PID_PLAIN: return put_right(p, (uint64_t)l->pid, c->width, ' ');
    case FTB_LINE_TGID: return put_tgid(p, l);
    case FTB_LINE_CPU: return put_right(p, (uint64_t)l->context->cpu, c->width, '0');
    case FTB_LINE_CPU_RIGHT: return put_right(p, (uint64_t)l->context->cpu, c->width, ' ');
    case FTB_LINE_FLAGS_HEX: return put_hex(p, l->flags, 0);
    case FTB_LINE_FLAGS: return put_right(p, l->flags, 0, ' ');
    case FTB_LINE_PREEMPT_HEX: return put_hex(p, l->preempt, 8);
    case FTB_LINE_INDEX_HEX: return put_hex(p, l->state->index, 8);
    case FTB_LINE_PID_HEX: return put_hex(p, (uint32_t)l->pid, 8);
    case FTB_LINE_CPU_HEX: return put_hex(p, (uint32_t)l->context->cpu, 8);
    case FTB_LINE_BUFFER: return put_buffer(p, l);
    case FTB_LINE_INDENT: return put_indent(p, l);
    case FTB_LINE_PROC: return put_proc(p, l, c);
    default: return put_time(p, l, c);
    }
}

/* Whether a column is the same for all records of a task on a stream. */
static bool is_of_task(uint32_t op)
{
    const uint64_t of_task = 1ull << FTB_LINE_TEXT | 1ull << FTB_LINE_COMM | 1ull << FTB_LINE_COMM_CUT | 1ull << FTB_LINE_PID |
                             1ull << FTB_LINE_PID_RIGHT | 1ull << FTB_LINE_PID_PLAIN | 1ull << FTB_LINE_TGID |
                             1ull << FTB_LINE_CPU | 1ull << FTB_LINE_CPU_RIGHT | 1ull << FTB_LINE_BUFFER |
                             1ull << FTB_LINE_PID_HEX | 1ull << FTB_LINE_CPU_HEX | 1ull << FTB_LINE_PROC;
    return of_task >> op & 1;
}

static bool needs_next(uint32_t op)
{
    return op == FTB_LINE_NEXT_MS || op == FTB_LINE_NEXT_MARK || op == FTB_LINE_NEXT_RAW;
}

/* Bytes of a record that hold all common fields of the usual widths; 0 where one has another. */
static uint32_t usual_common_size(const ftb_line_plan *plan)
{
    ftb_place places[] = {plan->pid, plan->common_flags, plan->preempt_count};
    uint32_t size = 0;
    if (plan->pid.width != 4 || plan->common_flags.width != 1 || plan->preempt_count.width != 1)
        return 0;
    for (size_t i = 0; i < 3; i++) {
        if (places[i].offset > UINT16_MAX)
            return 0;
        if (size < places[i].offset + places[i].width)
            size = places[i].offset + places[i].width;
    }
    return size;
}

bool ftb_line_plan_prepare(ftb_line_plan *plan)
{
    plan->needs_next = 0;
    for (uint32_t i = 0; i < plan->n_columns; i++) {
        if (plan->columns[i].op >= FTB_LINE_OPS)
            return false;
        plan->needs_next |= needs_next(plan->columns[i].op);
    }
    plan->n_head = 0;
    plan->head_room = 2 * FTB_SLACK;
    plan->common_size = usual_common_size(plan);
    if (plan->room > FTB_LINE_HEAD_MAX)
        return true;
    plan->head_room = plan->room;
    for (; plan->n_head < plan->n_columns && is_of_task(plan->columns[plan->n_head].op);)
        plan->n_head++;
    return true;
}

/* ---- lines ---- */

static int is_for_this_loop(const ftb_line_plan *plan, const ftb_line_state *state, const ftb_batch *b, uint32_t k)
{
    uint16_t slot = ftb_slot(b, k);
    return state->begun[ftb_stream_index(b, k)] && !ftb_is_after_loss(b, k) && slot < plan->n_slots &&
           plan->bodies[slot] != NULL && b->ts[k] >= plan->start && b->ts[k] >= 0;
}

/* The common fields, where they stand and have the size that all kernels of today give them; else one by one. */
static void load_common(line *l, const uint8_t *data, uint32_t len)
{
    const ftb_line_plan *plan = l->plan;
    if (FTB_LIKELY(plan->common_size != 0 && len >= plan->common_size)) {
        l->pid = (int32_t)ftb_load32(data + plan->pid.offset, plan->big_endian);
        l->flags = data[plan->common_flags.offset];
        l->preempt = data[plan->preempt_count.offset];
    } else {
        l->pid = (int32_t)common(plan, plan->pid, data, len);
        l->flags = (uint8_t)common(plan, plan->common_flags, data, len);
        l->preempt = (uint8_t)common(plan, plan->preempt_count, data, len);
    }
}

static void set_record(line *l, const ftb_batch *b, uint32_t k)
{
    l->slot = ftb_slot(b, k);
    l->stream = ftb_stream_index(b, k);
    l->ts = (uint64_t)b->ts[k];
    l->body = l->plan->bodies[l->slot];
    l->body_data = b->data[k];
    l->body_len = ftb_len(b, k);
    load_common(l, b->data[k], l->body_len);
    l->context->pid = l->pid;
    l->context->cpu = (int32_t)l->streams[l->stream].cpu;
    l->context->ts = b->ts[k];
}

/* How the line begins: with what the task's last line on this stream began. Also tells the context whose line it is. */
static char *put_head(char *p, const line *l)
{
    const ftb_line_plan *plan = l->plan;
    ftb_line_head *head = &l->state->heads[l->stream];
    char *text = l->state->head_texts + plan->head_room * l->stream;
    bool is_known = head->is_set && head->pid == l->pid;
    if (!is_known)
        *head = (ftb_line_head){.is_set = 1, .pid = l->pid, .comm = comm_of(plan, l->pid)};
    l->context->comm = plan->texts + head->comm.offset;
    l->context->comm_size = head->comm.size;
    if (!is_known) {
        char *end = text;
        for (uint32_t i = 0; i < plan->n_head; i++)
            end = put_column(end, l, &plan->columns[i]);
        head->size = (uint32_t)(end - text);
    }
    memcpy(p, text, FTB_SLACK); /* most are longer than one block */
    memcpy(p + FTB_SLACK, text + FTB_SLACK, FTB_SLACK);
    if (FTB_UNLIKELY(head->size > 2 * FTB_SLACK))
        memcpy(p, text, head->size);
    return p + head->size;
}

/* Columns from i on, up to the body or to `end`; returns the place of the first not done. */
static uint32_t put_columns(const line *l, uint32_t i, uint32_t end, ftb_text *out)
{
    const ftb_line_plan *plan = l->plan;
    char *p = ftb_room(out, plan->room);
    if (p == NULL)
        return end; /* the text's status says so */
    if (i == 0) {
        p = put_head(p, l);
        i = plan->n_head;
    }
    for (; i < end && plan->columns[i].op != FTB_LINE_BODY; i++) {
        const ftb_line_column *c = &plan->columns[i];
        switch (c->op) { /* those of most lines */
        case FTB_LINE_TEXT: p = copy_piece(p, plan, c->text); break;
        case FTB_LINE_EVENT_NAME: p = copy_piece(p, plan, plan->names[l->slot]); break;
        case FTB_LINE_LATENCY:
            p = copy_piece(copy_piece(p, plan, plan->flags[l->flags]), plan, plan->preempt[l->preempt]);
            break;
        case FTB_LINE_TIME_US: p = put_time_us(p, l->state, rounded_us(l->ts), c->width); break;
        default: p = put_column(p, l, c); break;
        }
    }
    out->len = (size_t)(p - out->data);
    return i;
}

static int put_range(const line *l, uint32_t i, uint32_t end, ftb_text *out)
{
    int status = FTB_OK;
    for (; i < end && status == FTB_OK; i++) {
        i = put_columns(l, i, end, out);
        if (i < end)
            status = ftb_render_body(l->body, l->context, l->body_data, l->body_len, out);
    }
    return status;
}

static bool is_call(const ftb_line_plan *plan, uint32_t slot)
{
    return plan->calls != NULL && plan->calls[slot].kind != FTB_LINE_NO_CALL;
}

/* What happens between calls: a comment in the kernel's graph. */
static int put_comment(const line *l, ftb_text *out)
{
    const ftb_line_plan *plan = l->plan;
    int status = put_range(l, 0, plan->n_call - 1, out);
    for (uint32_t i = plan->n_call; i < plan->n_columns && status == FTB_OK; i++) {
        status = put_range(l, i, i + 1, out);
        if (plan->columns[i].op == FTB_LINE_BODY && status == FTB_OK && out->len > 0)
            out->len -= out->data[out->len - 1] == '\n';
    }
    return status;
}

/* One line, or nothing: then the text is as it was. */
static int put_line(const line *l, ftb_text *out)
{
    const ftb_line_plan *plan = l->plan;
    size_t before = out->len;
    int status = plan->n_call == 0               ? put_range(l, 0, plan->n_columns, out)
                 : is_call(plan, l->slot) ? put_range(l, 0, plan->n_call, out)
                                                 : put_comment(l, out);
    if (status == FTB_OK && out->status == FTB_OK && (plan->max_line == 0 || out->len - before <= plan->max_line))
        return 1;
    out->len = before;
    return 0;
}

/* ---- calls that are drawn ---- */

enum leaf { IS_ALONE, IS_LEAF, IS_NOT_KNOWN };

static int is_there(ftb_place place, uint32_t len)
{
    return place.width != 0 && len >= place.width && len - place.width >= place.offset;
}

static int same(const ftb_line_plan *plan, const ftb_batch *b, uint32_t k, ftb_place at, uint32_t next, ftb_place at_next)
{
    return common(plan, at, b->data[k], ftb_len(b, k)) == common(plan, at_next, b->data[next], ftb_len(b, next));
}

/* The record that may be a call's return: the one after it, in the kernel's graph of its stream. */
static uint32_t next_of(const ftb_line_plan *plan, const ftb_batch *b, uint32_t k)
{
    uint32_t next = k + 1;
    if (plan->n_call != 0)
        for (uint32_t stream = ftb_stream_index(b, k); next < b->n && ftb_stream_index(b, next) != stream;)
            next++;
    return next;
}

/* Whether record `next` is the return of the call k. */
static enum leaf leaf_of(const ftb_line_plan *plan, const ftb_line_state *state, const ftb_batch *b, uint32_t k, uint32_t next)
{
    const ftb_line_call *call = &plan->calls[ftb_slot(b, k)];
    if (next >= b->n || ftb_slot(b, next) >= plan->n_slots)
        return IS_NOT_KNOWN;
    const ftb_line_call *other = &plan->calls[ftb_slot(b, next)];
    if (other->kind != FTB_LINE_RETURN)
        return IS_ALONE;
    if (!is_there(call->func, ftb_len(b, k)) || !is_there(other->func, ftb_len(b, next)))
        return IS_NOT_KNOWN;
    if (!same(plan, b, k, call->func, next, other->func) || !same(plan, b, k, plan->pid, next, plan->pid))
        return IS_ALONE;
    if (other->leaf == NULL || !is_for_this_loop(plan, state, b, next) || !same(plan, b, k, call->depth, next, other->depth))
        return IS_NOT_KNOWN;
    return IS_LEAF;
}

uint32_t ftb_line_return_of(const ftb_line_plan *plan, const ftb_line_state *state, const ftb_batch *batch, uint32_t k)
{
    if (!is_call(plan, ftb_slot(batch, k)) || plan->calls[ftb_slot(batch, k)].kind != FTB_LINE_CALL)
        return k;
    uint32_t next = next_of(plan, batch, k);
    enum leaf leaf = leaf_of(plan, state, batch, k, next);
    return leaf == IS_LEAF ? next : leaf == IS_ALONE ? k : batch->n;
}

/* What the kernel's graph makes of a record. */
typedef struct {
    const ftb_line_call *call; /* NULL: none, or another layout */
    ftb_drawn_cpu *cpu;
    uint64_t func, depth;
} drawing;

static drawing drawing_of(const line *l, const ftb_batch *b, uint32_t k)
{
    const ftb_line_plan *plan = l->plan;
    drawing d = {.cpu = plan->n_call != 0 ? &l->state->cpus[l->stream] : NULL};
    if (d.cpu == NULL || !is_call(plan, l->slot))
        return d;
    d.call = &plan->calls[l->slot];
    d.func = common(plan, d.call->func, b->data[k], ftb_len(b, k));
    d.depth = common(plan, d.call->depth, b->data[k], ftb_len(b, k));
    return d;
}

/* Whether nothing but the record's own line is to be printed, and that as it is mostly. */
static bool is_plain(const line *l, const drawing *d)
{
    if (d->cpu == NULL)
        return true;
    if (d->cpu->pid != l->pid || d->cpu->depth > FTB_DRAWN_DEPTHS)
        return false;
    if (d->call == NULL)
        return true;
    if (d->depth >= FTB_DRAWN_DEPTHS || (d->func >= l->plan->irq_low && d->func < l->plan->irq_high))
        return false;
    return d->call->kind == FTB_LINE_CALL || d->cpu->functions[d->depth] == d->func;
}

static void follow(const drawing *d, enum leaf leaf)
{
    if (d->call == NULL)
        return;
    bool opens = d->call->kind == FTB_LINE_CALL && leaf != IS_LEAF;
    d->cpu->depth = (int64_t)d->depth - !opens;
    d->cpu->functions[d->depth] = opens ? d->func : 0;
}

/* One record's line; of a call with its return `next`, where that is the leaf. Whether it was printed. */
static bool put_record(line *l, const ftb_batch *b, uint32_t k, ftb_text *out)
{
    const ftb_line_plan *plan = l->plan;
    bool opens = plan->calls != NULL && plan->calls[ftb_slot(b, k)].kind == FTB_LINE_CALL;
    uint32_t next = opens ? next_of(plan, b, k) : 0;
    enum leaf leaf = opens ? leaf_of(plan, l->state, b, k, next) : IS_ALONE;
    if (leaf == IS_NOT_KNOWN)
        return false;
    set_record(l, b, k);
    drawing d = drawing_of(l, b, k);
    if (leaf == IS_LEAF) {
        l->body = plan->calls[ftb_slot(b, next)].leaf;
        l->body_data = b->data[next];
        l->body_len = ftb_len(b, next);
    }
    if (l->pid < 0 || !is_plain(l, &d) || !put_line(l, out)) /* tasks that are none have names of their own */
        return false;
    follow(&d, leaf);
    if (leaf == IS_LEAF)
        l->state->drawn[next] = 1;
    return true;
}

uint32_t ftb_render_lines(const ftb_line_plan *plan, ftb_line_state *state, ftb_text_context *context, const ftb_stream *streams,
                          const ftb_batch *batch, uint32_t from, size_t enough, ftb_text *out)
{
    line l = {.plan = plan, .state = state, .context = context, .streams = streams};
    uint32_t k = from;
    for (; k < batch->n && out->len < enough; k++) {
        if (state->drawn[k]) {
            state->drawn[k] = 0;
            continue;
        }
        if (!is_for_this_loop(plan, state, batch, k))
            break;
        if (plan->needs_next && (k + 1 == batch->n || batch->ts[k + 1] < batch->ts[k]))
            break;
        l.next = plan->needs_next ? (uint64_t)batch->ts[k + 1] : 0;
        if (!put_record(&l, batch, k, out))
            break;
        state->previous = batch->ts[k];
        state->index++;
    }
    return k;
}
