/* Runs one program on its record cut at every length, on damaged records, and damaged programs on the record.
 *
 *     test_expr PROGRAM RECORD ROUNDS
 *
 * Every copy has exactly its own size, so that a sanitizer sees a read or write beyond it. Prints the text of the whole record.
 */
#include "ftb_expr.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static uint64_t seed = 88172645463325252u;

static uint64_t next_random(void)
{
    seed ^= seed << 13;
    seed ^= seed >> 7;
    seed ^= seed << 17;
    return seed;
}

static uint8_t *read_file(const char *path, size_t *size)
{
    FILE *file = fopen(path, "rb");
    if (file == NULL)
        exit(2);
    fseek(file, 0, SEEK_END);
    *size = (size_t)ftell(file);
    rewind(file);
    uint8_t *data = malloc(*size + 1);
    *size = fread(data, 1, *size, file);
    fclose(file);
    return data;
}

static void *exact_copy(const uint8_t *data, size_t size)
{
    void *copy = malloc(size ? size : 1);
    memcpy(copy, data, size);
    return copy;
}

static const uint64_t addresses[] = {0x1000, 0x2000}, ends[] = {0x2000, 0x3000};
static const uint32_t names[] = {0, 7};
static const char texts[] = "first\0\0second\0mod";
static const ftb_symbols symbols = {addresses, ends, names, names, texts, 2, sizeof texts};
static ftb_symbol_cache cache;
static ftb_calls calls[2];

static int run(const ftb_program *program, const uint8_t *record, size_t size, ftb_text *text)
{
    ftb_text_context context = {.symbols = &symbols, .cache = &cache, .calls = calls, .n_calls = 2, .comm = "me", .comm_size = 2};
    int64_t value;
    uint8_t *copy = exact_copy(record, size);
    int status = program->result ? ftb_eval(program, &context, copy, size, &value)
                                 : ftb_render_body(program, &context, copy, size, text);
    free(copy);
    return status;
}

static void damage(uint8_t *data, size_t size)
{
    for (uint64_t n = 1 + next_random() % 4; n > 0 && size > 0; n--)
        data[next_random() % size] = (uint8_t)next_random();
}

int main(int argc, char **argv)
{
    size_t block_size, record_size;
    if (argc != 4)
        return 2;
    uint8_t *block = read_file(argv[1], &block_size), *record = read_file(argv[2], &record_size);
    ftb_symbol_cache_reset(&cache);
    ftb_program program;
    ftb_text text = {.limit = 1 << 20};
    void *verified = exact_copy(block, block_size);
    if (ftb_program_open(verified, block_size, &program) != FTB_OK)
        return 3;
    if (run(&program, record, record_size, &text) == FTB_OK && text.len > 0)
        fwrite(text.data, 1, text.len, stdout);
    for (size_t size = 0; size < record_size; size++)
        run(&program, record, size, &text);
    for (long round = atol(argv[3]); round > 0; round--) {
        uint8_t *copy = exact_copy(record, record_size);
        damage(copy, record_size);
        text.len = 0;
        text.status = FTB_OK;
        run(&program, copy, record_size, &text);
        free(copy);
        copy = exact_copy(block, block_size);
        damage(copy, block_size);
        ftb_program other;
        if (ftb_program_open(copy, block_size, &other) == FTB_OK)
            run(&other, record, record_size, &text);
        free(copy);
    }
    ftb_text_free(&text);
    free(verified);
    free(block);
    free(record);
    return 0;
}
