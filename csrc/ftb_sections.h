/* Sections of a CPU in which something was off: from the row that says "off" to the next that says "on". */
#ifndef FTB_SECTIONS_H
#define FTB_SECTIONS_H

#include "ftbuf.h"

/* Rows of one step, and their places among the records of all events. */
typedef struct {
    const int64_t *order, *ts;
    const int64_t *caller;
    const int32_t *pid;
    const uint16_t *cpu;
    size_t n, at;
} ftb_switch_edges;

typedef struct {
    int64_t began, ended;
    int64_t caller, ended_by; /* of the rows that began and ended it */
    int32_t pid;              /* of the row that began it */
    uint32_t cpu;
} ftb_section;

typedef struct {
    int64_t since, caller;
    int32_t pid;
    uint32_t is_open;
} ftb_off;

typedef struct {
    /* state */
    ftb_column off; /* of ftb_off, by CPU */
    /* what came out */
    ftb_column found;          /* of ftb_section */
    uint64_t repeated, unbegun; /* rows that say "off" inside of a section, and "on" outside */
} ftb_sections;

/* All rows of a step, in their order. */
int ftb_sections_step(ftb_sections *s, ftb_switch_edges *off, ftb_switch_edges *on);
void ftb_sections_free(ftb_sections *s);

#endif
