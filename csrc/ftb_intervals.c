/* Beginnings and ends. */
#include "ftb_intervals.h"

#include "ftb_inline.h"

static ftb_under_way *find(ftb_intervals *v, int32_t key)
{
    int is_new;
    uint32_t number = ftb_pairs_number(&v->numbers, (uint32_t)key, 0, &is_new);
    if (FTB_UNLIKELY(is_new)) {
        ftb_under_way fresh = {.key = key};
        if (ftb_column_append(&v->under_way, &fresh, sizeof fresh) != FTB_OK)
            return NULL;
    }
    return number == FTB_NO_NUMBER ? NULL : (ftb_under_way *)(void *)v->under_way.data + number;
}

static int put(ftb_column *to, const ftb_under_way *u, int64_t ts, uint32_t flag)
{
    int64_t duration = ts > u->since ? (int64_t)((uint64_t)ts - (uint64_t)u->since) : 0;
    ftb_interval found = {duration, u->kind, u->key, flag};
    return ftb_column_append(to, &found, sizeof found);
}

static int begin(ftb_intervals *v, const ftb_edge_rows *rows, size_t i)
{
    ftb_under_way *u = find(v, rows->key[i]);
    if (u == NULL || (u->is_open && put(&v->lost, u, rows->ts[i], 0) != FTB_OK))
        return FTB_NO_MEMORY;
    *u = (ftb_under_way){rows->ts[i], rows->kind[i], rows->key[i], 1};
    return FTB_OK;
}

static int end(ftb_intervals *v, const ftb_edge_rows *rows, size_t i)
{
    ftb_under_way *u = find(v, rows->key[i]);
    if (u == NULL)
        return FTB_NO_MEMORY;
    if (!u->is_open)
        return FTB_OK; /* it began before the recording */
    u->is_open = 0;
    int lost = v->of_cpus ? ftb_gaps_since(&v->gaps, (uint32_t)u->key, u->since) : ftb_gaps_any_since(&v->gaps, u->since);
    return put(lost || u->kind != rows->kind[i] ? &v->lost : &v->whole, u, rows->ts[i], rows->flag != NULL && rows->flag[i]);
}

int ftb_intervals_step(ftb_intervals *v, ftb_edge_rows *begins, ftb_edge_rows *ends)
{
    while (begins->at < begins->n || ends->at < ends->n) {
        int is_end = begins->at >= begins->n || (ends->at < ends->n && ends->order[ends->at] < begins->order[begins->at]);
        ftb_edge_rows *rows = is_end ? ends : begins;
        size_t i = rows->at++;
        if (ftb_gaps_pass(&v->gaps, rows->ts[i]) != FTB_OK)
            return FTB_NO_MEMORY;
        if ((is_end ? end(v, rows, i) : begin(v, rows, i)) != FTB_OK)
            return FTB_NO_MEMORY;
    }
    return FTB_OK;
}

void ftb_intervals_free(ftb_intervals *v)
{
    ftb_gaps_free(&v->gaps);
    ftb_pairs_free(&v->numbers);
    ftb_column_free(&v->under_way);
    ftb_column_free(&v->whole);
    ftb_column_free(&v->lost);
}
