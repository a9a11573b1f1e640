/* From "off" to "on". */
#include "ftb_sections.h"

#include "ftb_inline.h"

static ftb_off *state_of(ftb_sections *s, uint16_t cpu)
{
    return ftb_column_at(&s->off, cpu, sizeof(ftb_off));
}

static void switch_off(ftb_sections *s, ftb_off *state, const ftb_switch_edges *rows, size_t i)
{
    if (state->is_open)
        s->repeated++;
    else
        *state = (ftb_off){rows->ts[i], rows->caller[i], rows->pid[i], 1};
}

static int switch_on(ftb_sections *s, ftb_off *state, const ftb_switch_edges *rows, size_t i)
{
    if (!state->is_open) {
        s->unbegun++;
        return FTB_OK;
    }
    ftb_section found = {state->since, rows->ts[i], state->caller, rows->caller[i], state->pid, rows->cpu[i]};
    state->is_open = 0;
    return ftb_column_append(&s->found, &found, sizeof found);
}

int ftb_sections_step(ftb_sections *s, ftb_switch_edges *off, ftb_switch_edges *on)
{
    while (off->at < off->n || on->at < on->n) {
        int is_on = off->at >= off->n || (on->at < on->n && on->order[on->at] < off->order[off->at]);
        ftb_switch_edges *rows = is_on ? on : off;
        size_t i = rows->at++;
        ftb_off *state = state_of(s, rows->cpu[i]);
        if (state == NULL)
            return FTB_NO_MEMORY;
        if (!is_on)
            switch_off(s, state, rows, i);
        else if (switch_on(s, state, rows, i) != FTB_OK)
            return FTB_NO_MEMORY;
    }
    return FTB_OK;
}

void ftb_sections_free(ftb_sections *s)
{
    ftb_column_free(&s->off);
    ftb_column_free(&s->found);
}
