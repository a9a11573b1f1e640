/* Numbers and their groups. */
#include "ftb_keys.h"

#include "ftb_inline.h"

int ftb_keys_groups(ftb_keys *k, const int64_t *keys, size_t n, int32_t *groups)
{
    uint32_t group = 0;
    for (size_t i = 0; i < n; i++) {
        int is_new = 0;
        if (i == 0 || keys[i] != keys[i - 1]) /* a task's, a CPU's rows come in runs */
            group = ftb_pairs_number(&k->numbers, (uint64_t)keys[i], 0, &is_new);
        if (FTB_UNLIKELY(group > INT32_MAX))
            return FTB_NO_MEMORY;
        if (is_new && ftb_column_append(&k->values, &keys[i], sizeof keys[i]) != FTB_OK)
            return FTB_NO_MEMORY;
        groups[i] = (int32_t)group;
    }
    return FTB_OK;
}

void ftb_keys_free(ftb_keys *k)
{
    ftb_column_free(&k->values);
    ftb_pairs_free(&k->numbers);
}
