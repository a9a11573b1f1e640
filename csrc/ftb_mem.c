/* Growable byte arrays. */
#ifndef _DEFAULT_SOURCE
#define _DEFAULT_SOURCE /* madvise */
#endif
#include "ftb_inline.h"
#include "ftbuf.h"

#include <stdlib.h>
#include <sys/mman.h>

#define FIRST_CAPACITY 4096
/* From this size on, memory is asked for in huge pages: touching fresh memory 4 KB at a time costs more than decoding into it. */
#define HUGE_PAGE ((size_t)2 << 20)

static void *allocate_huge(size_t *capacity)
{
    size_t rounded;
    if (ftb_add_overflows(*capacity, HUGE_PAGE - 1, &rounded))
        return NULL;
    rounded &= ~(HUGE_PAGE - 1);
    void *data = aligned_alloc(HUGE_PAGE, rounded);
    if (data != NULL) {
        *capacity = rounded;
        (void)madvise(data, rounded, MADV_HUGEPAGE); /* a wish: where it is refused, small pages serve as well */
    }
    return data;
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
    larger.data = allocate_huge(&capacity);
    if (larger.data == NULL)
        return FTB_NO_MEMORY;
    larger.capacity = capacity;
    make_ready(&larger, larger.size);
    if (column->size > 0)
        memcpy(larger.data, column->data, column->size);
    free(column->data);
    *column = larger;
    return FTB_OK;
}

static int grow(ftb_column *column, size_t capacity)
{
    if (capacity >= HUGE_PAGE)
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

void ftb_column_trim(ftb_column *column)
{
    if (column->size == column->capacity)
        return;
    uint8_t *data = realloc(column->data, column->size > 0 ? column->size : 1);
    if (data != NULL) {
        column->data = data;
        column->ready = column->capacity = column->size;
    }
}

void ftb_column_free(ftb_column *column)
{
    free(column->data);
    column->data = NULL;
    column->size = column->ready = column->capacity = 0;
}
