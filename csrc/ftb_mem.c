/* Growable byte arrays, and the pool that keeps the memory of those that are dropped. */
#ifndef _DEFAULT_SOURCE
#define _DEFAULT_SOURCE /* madvise, MAP_ANONYMOUS */
#endif
#include "ftb_inline.h"
#include "ftbuf.h"

#include <stdlib.h>
#include <sys/mman.h>

#define FIRST_CAPACITY 4096
/* From this size on, memory is asked for in huge pages: touching fresh memory 4 KB at a time costs more than decoding into it.
 * In mappings of its own: malloc would write its own marks at the start of pages, and so have them cleared the slow way. */
#define HUGE_PAGE ((size_t)2 << 20)
#define HUGE_FROM ((size_t)512 << 10)

static int round_up(size_t n, size_t unit, size_t *rounded)
{
    if (ftb_add_overflows(n, unit - 1, rounded))
        return 0;
    *rounded &= ~(unit - 1);
    return 1;
}

/* A mapping of `wanted` bytes, whole huge pages, aligned to them; NULL: no memory. */
static uint8_t *map_huge(size_t wanted)
{
    size_t all;
    if (ftb_add_overflows(wanted, HUGE_PAGE, &all))
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
    return data;
}

/* ---- the pool ---- */

#define SPINS 10000 /* the lock is held for some hundred instructions */

/* Whether the pool is ours. If not, whoever held it when this process was forked never lets go: then there is no pool. */
static int lock(ftb_pool *pool)
{
    for (int i = 0; i < SPINS; i++)
        if (!__atomic_test_and_set(&pool->busy, __ATOMIC_ACQUIRE))
            return 1;
    return 0;
}

static void unlock(ftb_pool *pool)
{
    __atomic_clear(&pool->busy, __ATOMIC_RELEASE);
}

/* The smallest of at least `want` bytes that is about as large as asked for, which is a guess; data NULL: there is none. */
static ftb_mapping take(ftb_pool *pool, size_t want, size_t capacity)
{
    ftb_mapping found = {0};
    if (!lock(pool))
        return found;
    uint32_t best = pool->n;
    for (uint32_t i = 0; i < pool->n; i++) {
        const size_t has = pool->free[i].capacity;
        if (has >= want && has >= capacity - capacity / 8 && has / 2 <= capacity && (best == pool->n || has < pool->free[best].capacity))
            best = i;
    }
    if (best < pool->n) {
        found = pool->free[best];
        pool->kept -= found.capacity;
        pool->free[best] = pool->free[--pool->n];
    }
    unlock(pool);
    return found;
}

/* Whether the pool has taken it. */
static int keep(ftb_pool *pool, const ftb_mapping *mapping)
{
    if (!lock(pool))
        return 0;
    const int room = pool->n < FTB_POOL_PLACES && mapping->capacity <= FTB_POOL_MOST - pool->kept;
    if (room) {
        pool->free[pool->n++] = *mapping;
        pool->kept += mapping->capacity;
    }
    unlock(pool);
    return room;
}

void ftb_pool_empty(ftb_pool *pool)
{
    if (!lock(pool))
        return;
    for (uint32_t i = 0; i < pool->n; i++)
        (void)munmap(pool->free[i].data, pool->free[i].capacity);
    pool->n = 0;
    pool->kept = 0;
    unlock(pool);
}

/* ---- columns ---- */

static ftb_column map_column(ftb_pool *pool, size_t want, size_t capacity)
{
    ftb_mapping mapping = {0};
    if (!round_up(capacity, HUGE_PAGE, &capacity))
        return (ftb_column){0};
    if (pool != NULL)
        mapping = take(pool, want, capacity);
    if (mapping.data == NULL)
        mapping = (ftb_mapping){map_huge(capacity), 0, capacity};
    return (ftb_column){.data = mapping.data, .ready = mapping.ready, .capacity = mapping.capacity, .mapped = 1, .pool = pool};
}

static void release(ftb_column *column)
{
    const ftb_mapping mapping = {column->data, column->ready, column->capacity};
    if (!column->mapped)
        free(column->data);
    else if (column->pool == NULL || !keep(column->pool, &mapping))
        (void)munmap(column->data, column->capacity);
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

static int move_to_huge(ftb_column *column, size_t want, size_t capacity)
{
    ftb_column larger = map_column(column->pool, want, capacity);
    if (larger.data == NULL)
        return FTB_NO_MEMORY;
    make_ready(&larger, column->size);
    larger.size = column->size;
    if (column->size > 0)
        memcpy(larger.data, column->data, column->size);
    release(column);
    *column = larger;
    return FTB_OK;
}

static int grow(ftb_column *column, size_t want, size_t capacity)
{
    if (capacity >= HUGE_FROM)
        return move_to_huge(column, want, capacity);
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
        capacity = capacity > want ? capacity : want;
        capacity = capacity > FIRST_CAPACITY ? capacity : FIRST_CAPACITY;
        /* where a guess is too much for the system, what is needed may not be */
        if ((expected <= want || grow(column, want, expected) != FTB_OK) && grow(column, want, capacity) != FTB_OK)
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

int ftb_column_extend(ftb_column *column, size_t size)
{
    const size_t more = size - column->size;
    if (ftb_column_reserve(column, more) != FTB_OK)
        return FTB_NO_MEMORY;
    memset(column->data + column->size, 0, more);
    column->size = size;
    return FTB_OK;
}

/* Give back what was reserved in vain; of a mapping only where that is much, since what is whole can be used again. */
void ftb_column_trim(ftb_column *column)
{
    if (column->size == column->capacity)
        return;
    if (column->mapped) {
        size_t kept;
        if (round_up(column->size, HUGE_PAGE, &kept) && kept > 0 && kept < column->capacity &&
            munmap(column->data + kept, column->capacity - kept) == 0) {
            column->capacity = kept;
            column->ready = column->ready < kept ? column->ready : kept;
        }
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
    *column = (ftb_column){.pool = column->pool};
}
