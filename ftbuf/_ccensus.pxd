# The C contract of counting as Cython sees it: declarations of csrc/ftb_census.h and nothing else.
from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t

from ftbuf._csrc cimport ftb_batch


cdef extern from "ftb_census.h" nogil:
    ctypedef struct ftb_tally:
        uint64_t records

    ctypedef struct ftb_census:
        ftb_tally *slots
        ftb_tally *streams
        uint64_t *bins
        uint32_t n_bins
        uint8_t by_slot
        int64_t start
        uint64_t width

    void ftb_tally_clear(ftb_tally *tally, size_t n)
    void ftb_census_add(ftb_census *census, const ftb_batch *batch)
