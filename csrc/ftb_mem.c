/* Growable byte arrays. */
#ifndef _DEFAULT_SOURCE
#define _DEFAULT_SOURCE /* madvise, MAP_ANONYMOUS */
#endif
#include "ftb_inline.h"
#include "ftbuf.h"

#include <stdlib.h>
#include <sys/mman.h>

#define FIRST_CAPACITY 4096
#define SMALL_PAGE ((size_t)4096)
/* From this size on, memory is asked for in huge pages: touching fresh memory 4 KB at a time costs more than decoding into it.
 * In mappings of its own: malloc would write its own marks at the start of pages, and so have them cleared the slow way. */
#define HUGE_PAGE ((size_t)2 << 20)
#define HUGE_FROM ((size_t)1 << 20)

static int round_up(size_t n, size_t unit, size_t *rounded)
{
    if (ftb_add_overflows(n, unit - 1, rounded))
        return 0;
    *rounded &= ~(unit - 1);
    return 1;
}

/* A mapping of whole huge pages, aligned to them; NULL: no memory. */
static uint8_t *map_huge(size_t *capacity)
{
    size_t wanted, all;
    if (!round_up(*capacity, HUGE_PAGE, &wanted) || ftb_add_overflows(wanted, HUGE_PAGE, &all))
        return NULL;
    uint8_t *data = mmap(NULL, all, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (data == MAP_FAILED)
        return NULL;
    const size_t before = (size_t)(-(uintptr_t)data & (HUGE_PAGE - 1)), after = HUGE_PAGE - before;
    if (before > 0)
        (void)munmap(data, before);
    data += before;
    if (after > 0)
        (void)munmap(data + wanted, after);
    (void)madvise(data, wanted, MADV_HUGEPAGE); /* a wish: where it is refused, small pages serve as well */
    *capacity = wanted;
    return data;
}

static void release(ftb_column *column)
{
    if (column->mapped > 0)
        (void)munmap(column->data, column->mapped);
    else
        free(column->data);
}

/* Have fresh huge pages cleared, up to `want` bytes, by touching each at its end: the kernel clears a huge page towards the
 * place that was touched (K:mm/memory.c process_huge_page), and clears upwards more than twice as fast as downwards. */
static void make_ready(ftb_column *column, size_t want)
{
    while (column->ready < want) {
        column->ready += HUGE_PAGE;
        *(volatile uint8_t *)(column->data + column->ready - 1) = 0;
    }
}

static int move_to_huge(ftb_column *column, size_t capacity)
{
    ftb_column larger = {.size = column->size};
    larger.data = map_huge(&capacity);
    if (larger.data == NULL)
        return FTB_NO_MEMORY;
    larger.capacity = larger.mapped = capacity;
    make_ready(&larger, larger.size);
    if (column->size > 0)
        memcpy(larger.data, column->data, column->size);
    release(column);
    *column = larger;
    return FTB_OK;
}

static int grow(ftb_column *column, size_t capacity)
{
    if (capacity >= HUGE_FROM)
        return move_to_huge(column, capacity);
    uint8_t *data = realloc(column->data, capacity);
    if (data == NULL)
        return FTB_NO_MEMORY;
    column->data = data;
    column->ready = column->capacity = capacity;
    return FTB_OK;
}

int ftb_column_reserve(ftb_column *column, size_t extra)
{
    return ftb_column_reserve_for(column, extra, 0);
}

int ftb_column_reserve_for(ftb_column *column, size_t extra, size_t expected)
{
    if (FTB_LIKELY(extra <= column->ready - column->size))
        return FTB_OK;
    size_t want, capacity;
    if (ftb_add_overflows(column->size, extra, &want))
        return FTB_NO_MEMORY;
    if (want > column->capacity) {
        if (ftb_mul_overflows(column->capacity, 2, &capacity))
            capacity = want;
        capacity = expected > want ? expected : capacity > want ? capacity : want;
        if (grow(column, capacity < FIRST_CAPACITY ? FIRST_CAPACITY : capacity) != FTB_OK)
            return FTB_NO_MEMORY;
    }
    make_ready(column, want);
    return FTB_OK;
}

int ftb_column_append(ftb_column *column, const void *bytes, size_t n)
{
    if (ftb_column_reserve(column, n) != FTB_OK)
        return FTB_NO_MEMORY;
    if (n > 0)
        memcpy(column->data + column->size, bytes, n);
    column->size += n;
    return FTB_OK;
}

/* Give back what was reserved in vain. */
void ftb_column_trim(ftb_column *column)
{
    if (column->size == column->capacity)
        return;
    if (column->mapped > 0) {
        size_t kept;
        if (round_up(column->size, SMALL_PAGE, &kept) && kept > 0 && kept < column->mapped &&
            munmap(column->data + kept, column->mapped - kept) == 0)
            column->mapped = column->ready = column->capacity = kept;
        return;
    }
    uint8_t *data = realloc(column->data, column->size > 0 ? column->size : 1);
    if (data != NULL) {
        column->data = data;
        column->ready = column->capacity = column->size;
    }
}

void ftb_column_free(ftb_column *column)
{
    release(column);
    *column = (ftb_column){0};
}
