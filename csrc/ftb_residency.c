/* Times in states. */
#include "ftb_residency.h"

#include "ftb_inline.h"

/* The number of a key; FTB_NO_NUMBER: no memory. */
static uint32_t find(ftb_residency *r, int64_t key, int64_t since)
{
    int is_new;
    uint32_t number = ftb_pairs_number(&r->keys, (uint64_t)key, 0, &is_new);
    if (FTB_UNLIKELY(is_new)) {
        ftb_in_state fresh = {key, since, r->unknown};
        if (ftb_column_append(&r->now, &fresh, sizeof fresh) != FTB_OK)
            return FTB_NO_NUMBER;
    }
    return number;
}

static ftb_in_state *state_of(ftb_residency *r, uint32_t number)
{
    return (ftb_in_state *)(void *)r->now.data + number;
}

static ftb_state_sums *sums_of(ftb_residency *r, uint32_t number, int64_t key, int64_t state)
{
    int is_new;
    uint32_t at = ftb_pairs_number(&r->numbers, (uint64_t)state, number, &is_new);
    if (FTB_UNLIKELY(is_new)) {
        ftb_state_sums fresh = {.key = key, .state = state};
        if (ftb_column_append(&r->sums, &fresh, sizeof fresh) != FTB_OK)
            return NULL;
    }
    return at == FTB_NO_NUMBER ? NULL : (ftb_state_sums *)(void *)r->sums.data + at;
}

/* The state that a key was in ends. */
static int leave(ftb_residency *r, uint32_t number, int64_t ts)
{
    const ftb_in_state *now = state_of(r, number);
    int64_t state = ftb_gaps_any_since(&r->gaps, now->since) ? r->unknown : now->state;
    int64_t time = ts > now->since ? (int64_t)((uint64_t)ts - (uint64_t)now->since) : 0;
    ftb_state_sums *sums = sums_of(r, number, now->key, state);
    if (sums == NULL)
        return FTB_NO_MEMORY;
    sums->count++;
    sums->time = (int64_t)((uint64_t)sums->time + (uint64_t)time);
    sums->max = time > sums->max ? time : sums->max;
    return FTB_OK;
}

int ftb_residency_begin(ftb_residency *r, int64_t key, int64_t since)
{
    return find(r, key, since) == FTB_NO_NUMBER ? FTB_NO_MEMORY : FTB_OK;
}

int ftb_residency_step(ftb_residency *r, const ftb_state_rows *rows)
{
    for (size_t i = 0; i < rows->n; i++) {
        int64_t ts = rows->ts[i];
        uint32_t number = find(r, rows->key[i], r->first);
        if (number == FTB_NO_NUMBER || ftb_gaps_pass(&r->gaps, ts) != FTB_OK || leave(r, number, ts) != FTB_OK)
            return FTB_NO_MEMORY;
        ftb_in_state *now = state_of(r, number);
        now->since = ts;
        now->state = rows->state[i];
    }
    return FTB_OK;
}

int ftb_residency_finish(ftb_residency *r, int64_t end)
{
    if (ftb_gaps_pass(&r->gaps, end) != FTB_OK)
        return FTB_NO_MEMORY;
    for (uint32_t i = 0; i < r->now.size / sizeof(ftb_in_state); i++)
        if (leave(r, i, end) != FTB_OK)
            return FTB_NO_MEMORY;
    return FTB_OK;
}

void ftb_residency_free(ftb_residency *r)
{
    ftb_gaps_free(&r->gaps);
    ftb_pairs_free(&r->keys);
    ftb_pairs_free(&r->numbers);
    ftb_column_free(&r->now);
    ftb_column_free(&r->sums);
}
