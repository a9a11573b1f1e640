/* The text of /proc/kallsyms as columns. */
#ifndef FTB_KALLSYMS_H
#define FTB_KALLSYMS_H

#include "ftbuf.h"

/* One row a symbol, in the order of the text. `texts` holds " NAME\0MODULE\0" for each; names and modules are places in it. */
typedef struct {
    ftb_column addresses; /* uint64_t */
    ftb_column types;     /* char */
    ftb_column names;     /* int64_t */
    ftb_column modules;   /* int64_t; -1: of the kernel itself */
    ftb_column texts;
} ftb_kallsyms;

/* Read the lines "ADDRESS TYPE NAME" and "ADDRESS TYPE NAME [MODULE]"; others cost only themselves. FTB_OK or FTB_NO_MEMORY. */
int ftb_kallsyms_read(const char *text, size_t size, ftb_kallsyms *out);
void ftb_kallsyms_free(ftb_kallsyms *symbols);

#endif
