/* Lines of plain layouts: prefix columns and the body's program, record after record. */
#include "ftb_line.h"

#include "ftb_emit.h"

#define NS_PER_S 1000000000ull
#define US_PER_S 1000000ull

/* One record, with what most columns need. */
typedef struct {
    const ftb_line_plan *plan;
    const ftb_line_state *state;
    ftb_text_context *context;
    const uint8_t *data;
    uint32_t len;
    uint32_t slot;
    uint32_t buffer;
    int32_t pid;
    uint64_t ts;
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

/* ---- columns ---- */

static void put_right(ftb_text *out, const char *s, size_t n, size_t width)
{
    if (n < width)
        ftb_fill(out, ' ', width - n);
    ftb_put(out, s, n);
}

static void put_left(ftb_text *out, const char *s, size_t n, size_t width)
{
    ftb_put(out, s, n);
    if (n < width)
        ftb_fill(out, ' ', width - n);
}

static size_t digits_of(char *end, uint64_t value)
{
    char *p = end;
    do
        *--p = (char)('0' + value % 10);
    while ((value /= 10) != 0);
    return (size_t)(end - p);
}

/* Number right-aligned (or filled with zeros, or left-aligned) in a width. */
static void put_number(ftb_text *out, int64_t value, size_t width, char fill)
{
    char digits[24], *end = digits + sizeof digits;
    size_t n = digits_of(end, value < 0 ? 0 - (uint64_t)value : (uint64_t)value);
    if (value < 0)
        end[-(ptrdiff_t)++n] = '-';
    if (fill != 0 && n < width)
        ftb_fill(out, fill, width - n);
    ftb_put(out, end - n, n);
    if (fill == 0 && n < width)
        ftb_fill(out, ' ', width - n);
}

static uint64_t rounded_us(uint64_t ns)
{
    return ns / 1000 + (ns % 1000 >= 500);
}

static void put_seconds(ftb_text *out, uint64_t value, uint64_t per_second, size_t decimals, size_t width)
{
    put_number(out, (int64_t)(value / per_second), width, ' ');
    ftb_put_char(out, '.');
    put_number(out, (int64_t)(value % per_second), decimals, '0');
}

static void put_difference(ftb_text *out, const line *l, int64_t difference, size_t width)
{
    char text[28], *end = text + sizeof text - 1;
    if (l->state->index == 0) {
        ftb_fill(out, ' ', width);
        return;
    }
    *end = ')';
    size_t n = digits_of(end, difference < 0 ? 0 - (uint64_t)difference : (uint64_t)difference);
    if (difference < 0)
        end[-(ptrdiff_t)++n] = '-';
    end[-(ptrdiff_t)++n] = '+'; /* also before a negative one, as trace-cmd does */
    end[-(ptrdiff_t)++n] = '(';
    put_left(out, end - n, n + 1, width);
}

static void put_tgid(ftb_text *out, const line *l)
{
    int32_t tgid = l->pid >= 0 && (uint32_t)l->pid < l->plan->n_tgids ? l->plan->tgid_of_pid[l->pid] : 0;
    if (tgid == 0)
        FTB_PUTS(out, "-------");
    else
        put_number(out, tgid, 7, ' ');
}

static void put_comm(ftb_text *out, const line *l, const ftb_line_column *c)
{
    size_t n = l->context->comm_size;
    if (c->op == FTB_LINE_COMM_CUT && n > c->width)
        n = c->width;
    put_right(out, l->context->comm, n, c->width);
}

static void put_piece(ftb_text *out, const ftb_line_plan *plan, ftb_piece piece)
{
    ftb_put(out, plan->texts + piece.offset, piece.size);
}

static void put_event_name(ftb_text *out, const line *l, size_t width)
{
    ftb_piece name = l->plan->names[l->slot];
    put_piece(out, l->plan, name);
    FTB_PUTS(out, ": ");
    if (name.size < width)
        ftb_fill(out, ' ', width - name.size);
}

static void put_time(ftb_text *out, const line *l, const ftb_line_column *c)
{
    uint64_t since = l->ts - (uint64_t)l->plan->start;
    int64_t previous = l->state->previous;
    switch (c->op) {
    case FTB_LINE_TIME_US: put_seconds(out, rounded_us(l->ts), US_PER_S, 6, c->width); break;
    case FTB_LINE_TIME_NS: put_seconds(out, l->ts, NS_PER_S, 9, c->width); break;
    case FTB_LINE_TIME_RAW: put_number(out, (int64_t)l->ts, c->width, ' '); break;
    case FTB_LINE_REL_US: put_number(out, (int64_t)rounded_us(since), c->width, ' '); break;
    case FTB_LINE_REL_MS: put_seconds(out, rounded_us(since), 1000, 3, 0); break;
    case FTB_LINE_DIFF: put_difference(out, l, (int64_t)(l->ts - (uint64_t)previous), c->width); break;
    default: put_difference(out, l, (int64_t)(rounded_us(l->ts) - rounded_us((uint64_t)previous)), c->width); break;
    }
}

static int put_column(ftb_text *out, const line *l, const ftb_line_column *c)
{
    const ftb_line_plan *plan = l->plan;
    switch (c->op) {
    case FTB_LINE_TEXT: put_piece(out, plan, c->text); break;
    case FTB_LINE_COMM:
    case FTB_LINE_COMM_CUT: put_comm(out, l, c); break;
    case FTB_LINE_PID: put_number(out, l->pid, c->width, 0); break;
    case FTB_LINE_PID_RIGHT:
    case FTB_LINE_PID_PLAIN: put_number(out, l->pid, c->width, ' '); break;
    case FTB_LINE_TGID: put_tgid(out, l); break;
    case FTB_LINE_CPU: put_number(out, l->context->cpu, c->width, '0'); break;
    case FTB_LINE_CPU_RIGHT: put_number(out, l->context->cpu, c->width, ' '); break;
    case FTB_LINE_LATENCY:
        put_piece(out, plan, plan->flags[l->flags]);
        put_piece(out, plan, plan->preempt[l->preempt]);
        break;
    case FTB_LINE_FLAGS_HEX: ftb_put_hex(out, l->flags, 1, false); break;
    case FTB_LINE_BODY: return ftb_render_body(plan->bodies[l->slot], l->context, l->data, l->len, out);
    case FTB_LINE_BUFFER:
        if (l->buffer < plan->n_labels)
            put_piece(out, plan, plan->labels[l->buffer]);
        break;
    case FTB_LINE_EVENT_NAME: put_event_name(out, l, c->width); break;
    default: put_time(out, l, c); break;
    }
    return FTB_OK;
}

int ftb_line_plan_supported(const ftb_line_plan *plan)
{
    const uint64_t not_supported = 1ull << FTB_LINE_PID_HEX | 1ull << FTB_LINE_CPU_HEX | 1ull << FTB_LINE_FLAGS |
                                   1ull << FTB_LINE_PREEMPT_HEX | 1ull << FTB_LINE_INDEX_HEX | 1ull << FTB_LINE_TIME_HEX |
                                   1ull << FTB_LINE_TIME_US_HEX | 1ull << FTB_LINE_NEXT_MS | 1ull << FTB_LINE_NEXT_MARK |
                                   1ull << FTB_LINE_NEXT_RAW;
    for (uint32_t i = 0; i < plan->n_columns; i++)
        if (plan->columns[i].op >= FTB_LINE_OPS || not_supported >> plan->columns[i].op & 1)
            return 0;
    return 1;
}

/* ---- lines ---- */

static int is_for_this_loop(const ftb_line_plan *plan, const ftb_line_state *state, const ftb_batch *b, uint32_t k)
{
    uint16_t slot = ftb_slot(b, k);
    return state->begun[ftb_stream_index(b, k)] && !ftb_is_after_loss(b, k) && slot < plan->n_slots && plan->bodies[slot] != NULL && b->ts[k] >= plan->start && b->ts[k] >= 0;
}

static line line_of(const ftb_line_plan *plan, const ftb_line_state *state, ftb_text_context *context, const ftb_stream *streams,
                    const ftb_batch *b, uint32_t k)
{
    const ftb_stream *s = &streams[ftb_stream_index(b, k)];
    line l = {.plan = plan, .state = state, .context = context, .data = b->data[k], .len = ftb_len(b, k),
              .slot = ftb_slot(b, k), .buffer = s->buffer, .ts = (uint64_t)b->ts[k]};
    l.pid = (int32_t)common(plan, plan->pid, l.data, l.len);
    l.flags = (uint8_t)common(plan, plan->common_flags, l.data, l.len);
    l.preempt = (uint8_t)common(plan, plan->preempt_count, l.data, l.len);
    ftb_piece comm = comm_of(plan, l.pid);
    context->comm = plan->texts + comm.offset;
    context->comm_size = comm.size;
    context->pid = l.pid;
    context->cpu = (int32_t)s->cpu;
    context->ts = b->ts[k];
    return l;
}

/* One line, or nothing: then the text is as it was. */
static int put_line(const line *l, ftb_text *out)
{
    size_t before = out->len;
    int status = l->pid < 0 ? FTB_UNKNOWN_EVENT : FTB_OK; /* tasks that are none have names of their own */
    for (uint32_t i = 0; i < l->plan->n_columns && status == FTB_OK; i++)
        status = put_column(out, l, &l->plan->columns[i]);
    if (status == FTB_OK && out->status == FTB_OK && (l->plan->max_line == 0 || out->len - before <= l->plan->max_line))
        return 1;
    out->len = before;
    return 0;
}

uint32_t ftb_render_lines(const ftb_line_plan *plan, ftb_line_state *state, ftb_text_context *context, const ftb_stream *streams,
                          const ftb_batch *batch, uint32_t from, size_t enough, ftb_text *out)
{
    uint32_t k = from;
    for (; k < batch->n && out->len < enough; k++) {
        if (!is_for_this_loop(plan, state, batch, k))
            break;
        line l = line_of(plan, state, context, streams, batch, k);
        if (!put_line(&l, out))
            break;
        state->previous = batch->ts[k];
        state->index++;
    }
    return k;
}
