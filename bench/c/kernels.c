/* Runs one kernel over a file of sub-buffers: for instruction counts (callgrind) and for timing without Python.
 *
 *   kernels scan|function FILE SUBBUF REPEAT reused|fresh
 *
 * scan: walk and count. function: six header and payload columns of function-tracer records, as the Python layer plans them.
 * Outputs (and the memcpy they are compared with) go to memory that was touched before, or to fresh memory.
 * Prints events, seconds and the seconds of a memcpy of the same bytes.
 */
#include "ftbuf.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static uint8_t *read_file(const char *path, size_t *size)
{
    FILE *f = fopen(path, "rb");
    if (f == NULL)
        exit(2);
    fseek(f, 0, SEEK_END);
    *size = (size_t)ftell(f);
    rewind(f);
    uint8_t *data = malloc(*size);
    if (data == NULL || fread(data, 1, *size, f) != *size)
        exit(2);
    fclose(f);
    return data;
}

static ftb_op header_op(uint8_t code)
{
    ftb_op op = {.op = code};
    return op;
}

static ftb_op scalar_op(uint32_t offset, uint8_t width, uint8_t is_signed)
{
    ftb_op op = {.op = FTB_OP_SCALAR, .width = width, .out_width = width, .is_signed = is_signed, .offset = offset, .size = width};
    return op;
}

/* Seconds of one memcpy, into memory that was touched before or into fresh memory. */
static double copy_once(const uint8_t *data, size_t size, uint8_t **kept, int fresh)
{
    if (*kept == NULL) {
        *kept = aligned_alloc(2 << 20, (size + (2 << 20)) & ~(size_t)((2 << 20) - 1));
        madvise(*kept, size, MADV_HUGEPAGE);
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

int main(int argc, char **argv)
{
    if (argc != 6)
        return 2;
    size_t size;
    uint8_t *data = read_file(argv[2], &size), *kept = NULL;
    int repeat = atoi(argv[4]), gather = strcmp(argv[1], "function") == 0, fresh = strcmp(argv[5], "fresh") == 0;
    ftb_abi abi = {.subbuf_size = (uint32_t)atoi(argv[3]), .data_offset = 16, .commit_size = 8, .type_size = 2};
    static ftb_batch batch;
    static ftb_group group;
    static int32_t codes[65536];
    static uint16_t slot_of[FTB_N_IDS]; /* every event in slot 0 */
    ftb_op comm = {.op = FTB_OP_COMM, .width = 4, .out_width = 4, .offset = 4, .size = 4};
    ftb_op ops[] = {header_op(FTB_OP_TS), header_op(FTB_OP_CPU), scalar_op(4, 4, 1), comm,
                    scalar_op(2, 1, 0), scalar_op(3, 1, 0), scalar_op(8, 8, 0), scalar_op(16, 8, 0)};
    const ftb_select select = {.slot_of = slot_of};
    const ftb_comms comms = {codes, 65536};
    ftb_plan plan = {.ops = ops, .comms = &comms, .n_ops = 8, .min_len = 24};
    if (ftb_plan_check(&plan) != FTB_OK)
        return 1;
    double best = 1e9, best_copy = 1e9;
    uint64_t events = 0;
    for (int r = 0; r < repeat; r++) {
        double elapsed = copy_once(data, size, &kept, fresh);
        best_copy = elapsed < best_copy ? elapsed : best_copy;
        ftb_stream s = {.abi = &abi, .select = &select, .last_ts = INT64_MIN};
        uint16_t plan_of_slot[1] = {gather ? 0 : FTB_NO_PLAN};
        uint64_t count[1] = {0};
        ftb_decoder d = {.merge = {.streams = &s, .n_streams = 1},
                         .context = {&s, 1, size}, .plan_of_slot = plan_of_slot, .count_of_slot = count, .plans = &plan,
                         .n_plans = 1, .groups = &group, .batch = &batch};
        double t = now();
        ftb_stream_feed(&s, data, size, 0, 1);
        int status = ftb_decode(&d, UINT64_MAX);
        elapsed = now() - t;
        best = elapsed < best ? elapsed : best;
        if (status != FTB_DONE)
            return 1;
        events = s.events;
        if (fresh)
            ftb_plan_free(&plan);
        for (uint32_t i = 0; i < plan.n_ops; i++)
            ops[i].column.size = 0;
    }
    printf("%s, %s: %llu events, %.2f ns an event, memcpy %.2f GB/s: ratio %.2f\n", argv[1], argv[5], (unsigned long long)events,
           1e9 * best / (double)events, 1e-9 * (double)size / best_copy, best / best_copy);
    return 0;
}
