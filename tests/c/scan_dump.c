/* Prints what the C core's scan and merge make of pages, for tests/test_scan.py.
 *
 * Reads cases from stdin until its end:
 *     BIG LONG SUBBUF DATA_OFFSET OLD PAGES_PER_SEGMENT N SIZE... \n   then the bytes of N streams.
 * Every segment is a block of its own, of exactly its size, and is freed as soon as the next one is asked for: a sanitizer
 * sees each read that strays.
 */
#include "ftbuf.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
    uint8_t *all;
    size_t size, fed;
    uint8_t *segment;
} input;

static uint16_t slot_of[FTB_N_IDS];
static ftb_batch out;

static void *need(void *p)
{
    if (p == NULL)
        exit(2);
    return p;
}

static void feed(input *in, ftb_stream *s, size_t segment_size)
{
    size_t left = in->size - in->fed, size = left < segment_size ? left : segment_size;
    free(in->segment);
    in->segment = need(malloc(size > 0 ? size : 1));
    if (size > 0)
        memcpy(in->segment, in->all + in->fed, size);
    ftb_stream_feed(s, in->segment, size, in->fed, left == size);
    in->fed += size;
}

static void print_batch(const ftb_stream *streams, const ftb_batch *b)
{
    for (uint32_t i = 0; i < b->n; i++) {
        uint32_t k = ftb_stream_index(b, i);
        const ftb_stream *s = &streams[k];
        printf("E %" PRIu32 " %" PRIu64 " %" PRIu32 " %" PRId64 " %u\n", k, s->file_offset + (uint64_t)(b->data[i] - s->data),
               ftb_len(b, i), b->ts[i], ftb_slot(b, i));
    }
}

static void print_report(const ftb_report *report)
{
    const ftb_problem *p = (const void *)report->problems.data;
    for (size_t i = 0; i < report->problems.size / sizeof *p; i++)
        printf("P %" PRIu32 " %s %" PRIu64 " %" PRIu64 "\n", p[i].stream, ftb_status_name((int)p[i].status), p[i].offset, p[i].bytes);
    const ftb_loss *l = (const void *)report->losses.data;
    for (size_t i = 0; i < report->losses.size / sizeof *l; i++)
        printf("L %" PRIu32 " %" PRId64 " %" PRId64 " %" PRId64 "\n", l[i].stream, l[i].before, l[i].after, l[i].count);
}

static void run(const ftb_abi *abi, input *inputs, uint32_t n, size_t segment_size)
{
    ftb_stream *streams = need(calloc(n, sizeof *streams));
    ftb_batch *batches = need(calloc(2 * (size_t)n, sizeof *batches));
    ftb_source *sources = need(calloc(2 * (size_t)n, sizeof *sources));
    ftb_select select = {.slot_of = slot_of};
    ftb_report report = {0};
    ftb_merge m = {.streams = streams, .n_streams = n, .sources = sources};
    for (size_t i = 0; i < 2 * (size_t)n; i++)
        sources[i].batch = &batches[i];
    ftb_merge_plant(&m);
    for (uint32_t i = 0; i < n; i++) {
        streams[i].abi = abi;
        streams[i].select = &select;
        streams[i].index = i;
        streams[i].last_ts = INT64_MIN;
    }
    for (;;) {
        ftb_batch_clear(&out);
        int status = ftb_merge_fill(&m, &out, &report);
        print_batch(streams, &out);
        if (status == FTB_NEED_SEGMENT)
            feed(&inputs[m.need], &streams[m.need], segment_size);
        else if (status != FTB_OK) {
            printf("X %s\n", ftb_status_name(status));
            break;
        }
    }
    print_report(&report);
    printf("END\n");
    fflush(stdout);
    ftb_column_free(&report.problems);
    ftb_column_free(&report.losses);
    free(sources);
    free(batches);
    free(streams);
}

int main(void)
{
    unsigned big, commit, subbuf, data, old, pages, n;
    for (unsigned i = 0; i < FTB_N_IDS; i++)
        slot_of[i] = (uint16_t)(i < FTB_NO_SLOT ? i : FTB_NO_SLOT - 1);
    while (scanf("%u %u %u %u %u %u %u", &big, &commit, &subbuf, &data, &old, &pages, &n) == 7) {
        ftb_abi abi = {.subbuf_size = subbuf, .data_offset = data, .commit_size = commit, .type_size = 2,
                       .big_endian = (uint8_t)big, .old_header = (uint8_t)old};
        input *inputs = need(calloc(n, sizeof *inputs));
        for (unsigned i = 0; i < n; i++)
            if (scanf("%zu", &inputs[i].size) != 1)
                return 2;
        if (getchar() != '\n')
            return 2;
        for (unsigned i = 0; i < n; i++) {
            inputs[i].all = need(malloc(inputs[i].size + 1));
            if (fread(inputs[i].all, 1, inputs[i].size, stdin) != inputs[i].size)
                return 2;
        }
        run(&abi, inputs, n, (size_t)pages * subbuf);
        for (unsigned i = 0; i < n; i++) {
            free(inputs[i].all);
            free(inputs[i].segment);
        }
        free(inputs);
    }
    return 0;
}
