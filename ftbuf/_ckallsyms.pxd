# The C contract of kernel symbols as Cython sees it: declarations of csrc/ftb_kallsyms.h and nothing else.
from ftbuf._csrc cimport ftb_column


cdef extern from "ftb_kallsyms.h" nogil:
    ctypedef struct ftb_kallsyms:
        ftb_column addresses
        ftb_column types
        ftb_column names
        ftb_column modules
        ftb_column texts

    int ftb_kallsyms_read(const char *text, size_t size, ftb_kallsyms *out)
    void ftb_kallsyms_free(ftb_kallsyms *symbols)
