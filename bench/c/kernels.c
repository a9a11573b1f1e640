/* Runs one kernel over a file of sub-buffers: for instruction counts (callgrind) and for timing without Python.
 *
 *   kernels scan|walk|decode|merge|together PAGES PLANS SUBBUF REPEAT reused|fresh
 *
 * PLANS is what Python asks of the core, as text: per event "event ID SLOT PLAN", per plan "plan MIN_LEN N" and N lines of
 * "OP WHERE WIDTH OUT_WIDTH SIGNED OFFSET SIZE DICTIONARY", the last a number, 0: none. scan: count. walk: make refs, and count them. decode: every column of every plan.
 * merge: walk the pages as those of two CPUs, whose records then take turns, and count;
 * together: the same, and decode. Outputs (and the memcpy that they are compared with) go to memory
 * that was touched before, or to fresh memory. Prints events, nanoseconds an event, the rate of a memcpy of the same bytes, the
 * ratio to it, and the bytes of the columns.
 */
#include "ftbuf.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#define MOST_PLANS 4096
#define PIDS 65536

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static uint8_t *huge(size_t size)
{
    size_t rounded = (size + (2 << 20)) & ~(size_t)((2 << 20) - 1);
    uint8_t *memory = aligned_alloc(2 << 20, rounded);
    if (memory == NULL)
        exit(2);
    madvise(memory, rounded, MADV_HUGEPAGE);
    return memory;
}

static uint8_t *read_file(const char *path, size_t *size)
{
    FILE *f = fopen(path, "rb");
    if (f == NULL)
        exit(2);
    fseek(f, 0, SEEK_END);
    *size = (size_t)ftell(f);
    rewind(f);
    uint8_t *data = huge(*size);
    if (fread(data, 1, *size, f) != *size)
        exit(2);
    fclose(f);
    return data;
}

static uint16_t slot_of[FTB_N_IDS], plan_of_slot[FTB_N_IDS];
static uint64_t count_of_slot[FTB_N_IDS];
static ftb_plan plans[MOST_PLANS];
static ftb_group groups[MOST_PLANS], *group_of_plan[MOST_PLANS];
static uint32_t n_plans;
static int32_t codes[PIDS];
static const ftb_comms comms = {codes, PIDS};

static ftb_intern *dictionary(unsigned number)
{
    static ftb_intern *made[MOST_PLANS];
    if (number == 0 || number >= MOST_PLANS)
        return NULL;
    if (made[number] == NULL) {
        made[number] = malloc(sizeof *made[number]);
        if (made[number] == NULL || ftb_intern_init(made[number]) != FTB_OK)
            exit(2);
    }
    return made[number];
}

static ftb_op read_op(FILE *f)
{
    unsigned v[8];
    for (int i = 0; i < 8; i++)
        if (fscanf(f, "%u", &v[i]) != 1)
            exit(2);
    ftb_op op = {.op = (uint8_t)v[0], .where = (uint8_t)v[1], .width = (uint8_t)v[2], .out_width = (uint8_t)v[3],
                 .is_signed = (uint8_t)v[4], .offset = v[5], .size = v[6], .intern = dictionary(v[7])};
    return op;
}

static void read_plans(const char *path)
{
    FILE *f = fopen(path, "r");
    char word[8];
    unsigned a, b, c;
    if (f == NULL)
        exit(2);
    memset(slot_of, 0xff, sizeof slot_of);
    while (fscanf(f, "%7s %u %u", word, &a, &b) == 3) {
        if (strcmp(word, "event") == 0 && fscanf(f, "%u", &c) == 1) {
            slot_of[a] = (uint16_t)b;
            plan_of_slot[b] = (uint16_t)c;
        } else {
            ftb_plan *plan = &plans[n_plans++];
            *plan = (ftb_plan){.ops = calloc(b, sizeof *plan->ops), .comms = &comms, .n_ops = b, .min_len = a};
            for (uint32_t i = 0; i < b; i++)
                plan->ops[i] = read_op(f);
            if (ftb_plan_check(plan) != FTB_OK)
                exit(2);
        }
    }
    fclose(f);
}

/* Seconds of one memcpy, into memory that was touched before or into fresh memory. */
static double copy_once(const uint8_t *data, size_t size, uint8_t **kept, int fresh)
{
    if (*kept == NULL) {
        *kept = huge(size);
        if (!fresh)
            memset(*kept, 1, size);
    }
    double t = now();
    memcpy(*kept, data, size);
    t = now() - t;
    if (fresh) {
        free(*kept);
        *kept = NULL;
    }
    return t;
}

/* Forget the columns, or only what is in them; returns how many bytes that was. */
static size_t empty_columns(int fresh)
{
    size_t bytes = 0;
    for (uint32_t p = 0; p < n_plans; p++) {
        for (uint32_t i = 0; i < plans[p].n_ops; i++) {
            ftb_op *op = &plans[p].ops[i];
            bytes += op->column.size + op->values.size;
            op->column.size = op->values.size = 0;
        }
        if (fresh)
            ftb_plan_free(&plans[p]);
    }
    return bytes;
}

int main(int argc, char **argv)
{
    if (argc != 7)
        return 2;
    size_t size;
    uint8_t *data = read_file(argv[2], &size), *kept = NULL;
    const uint32_t subbuf = (uint32_t)atoi(argv[4]), streams = argv[1][0] == 'm' || argv[1][0] == 't' ? 2 : 1;
    const int repeat = atoi(argv[5]), gather = argv[1][0] == 'd' || argv[1][0] == 't', fresh = strcmp(argv[6], "fresh") == 0;
    const ftb_abi abi = {.subbuf_size = subbuf, .data_offset = 16, .commit_size = 8, .type_size = 2};
    static ftb_batch batches[3];
    read_plans(argv[3]);
    if (!gather)
        memset(plan_of_slot, 0xff, sizeof plan_of_slot);
    for (uint32_t i = 0; i < n_plans; i++)
        group_of_plan[i] = &groups[i];
    const ftb_select select = {.slot_of = slot_of};
    double best = 1e9, best_copy = 1e9;
    uint64_t events = 0;
    size_t bytes = 0;
    for (int r = 0; r < repeat; r++) {
        double elapsed = copy_once(data, size, &kept, fresh);
        best_copy = elapsed < best_copy ? elapsed : best_copy;
        ftb_stream s[2] = {{.abi = &abi, .select = &select, .last_ts = INT64_MIN},
                           {.abi = &abi, .select = &select, .last_ts = INT64_MIN, .index = 1, .cpu = 1}};
        ftb_source sources[3] = {{.batch = &batches[0]}, {.batch = &batches[1]}};
        ftb_decoder d = {.merge = {.streams = s, .n_streams = streams, .sources = sources}, .context = {s, streams, size},
                         .plan_of_slot = plan_of_slot, .count_of_slot = count_of_slot, .plans = plans,
                         .n_plans = argv[1][0] == 's' ? 0 : n_plans, .groups = group_of_plan, .batch = &batches[2]};
        ftb_merge_plant(&d.merge);
        ftb_batch_clear(d.batch);
        double t = now();
        for (uint32_t i = 0; i < streams; i++)
            ftb_stream_feed(&s[i], data, size, 0, 1);
        int status = ftb_decode(&d, UINT64_MAX);
        elapsed = now() - t;
        best = elapsed < best ? elapsed : best;
        if (status != FTB_DONE)
            return 1;
        events = s[0].events + s[1].events;
        bytes = empty_columns(fresh);
    }
    printf("%s, %s: %llu events, %.2f ns an event, memcpy %.2f GB/s: ratio %.3f, %zu bytes of columns\n", argv[1], argv[6],
           (unsigned long long)events, 1e9 * best / (double)events, 1e-9 * (double)size / best_copy, best / best_copy, bytes);
    return 0;
}
