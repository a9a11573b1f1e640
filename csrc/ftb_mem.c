/* Growable byte arrays. */
#include "ftb_inline.h"
#include "ftbuf.h"

#include <stdlib.h>

#define FTB_COLUMN_FIRST 4096

int ftb_column_reserve(ftb_column *column, size_t extra)
{
    if (FTB_LIKELY(extra <= column->capacity - column->size))
        return FTB_OK;
    size_t want, doubled;
    if (ftb_add_overflows(column->size, extra, &want))
        return FTB_NO_MEMORY;
    if (ftb_mul_overflows(column->capacity, 2, &doubled))
        doubled = want;
    size_t capacity = want > doubled ? want : doubled;
    if (capacity < FTB_COLUMN_FIRST)
        capacity = FTB_COLUMN_FIRST;
    uint8_t *data = realloc(column->data, capacity);
    if (data == NULL)
        return FTB_NO_MEMORY;
    column->data = data;
    column->capacity = capacity;
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
        column->capacity = column->size;
    }
}

void ftb_column_free(ftb_column *column)
{
    free(column->data);
    column->data = NULL;
    column->size = column->capacity = 0;
}
