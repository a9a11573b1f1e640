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
/* What is smaller is not worth a place in the pool: malloc has it at hand, too. */
#define POOLED_FROM ((size_t)32 << 10)

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

/* How ill memory serves who needs `want` bytes now and expects to need `expected`: SIZE_MAX, not at all. What is a little smaller
 * than was guessed may do; what is far larger is better kept for others. */
static size_t misfit(const ftb_mapping *mapping, size_t want, size_t expected)
{
    const size_t unit = mapping->mapped ? HUGE_PAGE : 1, has = mapping->capacity;
    if (has < want || has < expected - expected / 16 || has / 2 > (expected > unit ? expected : unit))
        return SIZE_MAX;
    return has >= expected ? has - expected : expected;
}

/* What serves best; data NULL: nothing does. */
static ftb_mapping take(ftb_pool *pool, size_t want, size_t expected)
{
    ftb_mapping found = {0};
    size_t least = SIZE_MAX;
    uint32_t best = 0;
    if (!lock(pool))
        return found;
    for (uint32_t i = 0; i < pool->n; i++) {
        const size_t here = misfit(&pool->free[i], want, expected);
        if (here < least) {
            least = here;
            best = i;
        }
    }
    if (least < SIZE_MAX) {
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

static void give_back(const ftb_mapping *mapping)
{
    if (mapping->mapped)
        (void)munmap(mapping->data, mapping->capacity);
    else
        free(mapping->data);
}

void ftb_pool_empty(ftb_pool *pool)
{
    if (!lock(pool))
        return;
    for (uint32_t i = 0; i < pool->n; i++)
        give_back(&pool->free[i]);
    pool->n = 0;
    pool->kept = 0;
    unlock(pool);
}

/* ---- columns ---- */

static ftb_column column_of(ftb_mapping mapping, ftb_pool *pool)
{
    return (ftb_column){.data = mapping.data, .ready = mapping.ready, .capacity = mapping.capacity, .mapped = mapping.mapped, .pool = pool};
}

static void release(ftb_column *column)
{
    const ftb_mapping mapping = {column->data, column->ready, column->capacity, column->mapped};
    if (column->pool == NULL || mapping.capacity < POOLED_FROM || !keep(column->pool, &mapping))
        give_back(&mapping);
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

static void move(ftb_column *column, ftb_column larger)
{
    make_ready(&larger, column->size);
    larger.size = column->size;
    if (column->size > 0)
        memcpy(larger.data, column->data, column->size);
    if (column->mapped)
        release(column);
    else
        free(column->data); /* as large as nobody asks for */
    *column = larger;
}

/* Memory of the pool, else a mapping of `capacity` bytes; data NULL: there is none of the first, and the second is not for so
 * little. */
static ftb_mapping find_memory(ftb_pool *pool, size_t want, size_t expected, size_t capacity)
{
    ftb_mapping found = {0};
    if (pool != NULL && expected >= POOLED_FROM)
        found = take(pool, want, expected);
    if (found.data == NULL && capacity >= HUGE_FROM && round_up(capacity, HUGE_PAGE, &capacity))
        found = (ftb_mapping){map_huge(capacity), 0, capacity, 1};
    return found;
}

static int grow(ftb_column *column, size_t want, size_t expected, size_t capacity)
{
    const ftb_mapping found = find_memory(column->pool, want, expected, capacity);
    if (found.data != NULL) {
        move(column, column_of(found, column->pool));
        return FTB_OK;
    }
    uint8_t *data = capacity < HUGE_FROM ? realloc(column->data, capacity) : NULL;
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
        /* small memory of the pool is for those who know that they need no more */
        const size_t from_pool = capacity >= HUGE_FROM ? capacity : 0;
        /* where a guess is too much for the system, what is needed may not be */
        if ((expected <= want || grow(column, want, expected, expected + expected / 12) != FTB_OK) &&
            grow(column, want, from_pool, capacity) != FTB_OK)
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

/* Give back what was reserved in vain; of what the pool keeps only where that is much, since what is whole can be used again. */
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
    if (column->capacity >= POOLED_FROM && column->capacity - column->size <= column->capacity / 8)
        return;
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
