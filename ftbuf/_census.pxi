# Part of _core.pyx: records counted where they are found.
from ftbuf._ccensus cimport *


cdef int make_zeros(ftb_column *column, size_t n, size_t width) except -1:
    if width and n > <size_t>-1 // width or ftb_column_reserve(column, n * width) != FTB_OK:
        raise MemoryError
    if n * width:
        column.size = n * width
        memset(column.data, 0, column.size)
    return 0


@cython.final
cdef class Census:
    """Counts the records of `records`.

    Parameters
    ----------
    records : Records
        Not yet begun.
    grid : (start, width, number of bins, whether by slot instead of by stream), or None
    """

    cdef Records records
    cdef ftb_census census
    cdef ftb_column slots, streams, bins

    def __cinit__(self, Records records not None, grid=None):
        self.records = records
        make_zeros(&self.slots, records.decoder.n_slots, sizeof(ftb_tally))
        make_zeros(&self.streams, records.decoder.d.merge.n_streams, sizeof(ftb_tally))
        self.census.slots, self.census.streams = <ftb_tally *>self.slots.data, <ftb_tally *>self.streams.data
        ftb_tally_clear(self.census.slots, records.decoder.n_slots)
        ftb_tally_clear(self.census.streams, records.decoder.d.merge.n_streams)
        if grid is not None:
            self.census.start, self.census.width, self.census.n_bins, self.census.by_slot = grid
            if not self.census.width or not self.census.n_bins:
                raise ValueError("bins have a width and a number")
            rows = records.decoder.n_slots if self.census.by_slot else records.decoder.d.merge.n_streams
            make_zeros(&self.bins, rows * self.census.n_bins, sizeof(uint64_t))
            self.census.bins = <uint64_t *>self.bins.data

    def __dealloc__(self):
        ftb_column_free(&self.slots)
        ftb_column_free(&self.streams)
        ftb_column_free(&self.bins)

    def run(self):
        """All records: (rows of ftb_tally by slot, by stream, uint64 counts of the bins)."""
        if self.census.slots is NULL:
            raise ValueError("this census has been taken")
        while self.records.refill():
            with nogil:
                ftb_census_add(&self.census, self.records.decoder.d.batch)
        self.census.slots = NULL
        return Column.adopt(&self.slots), Column.adopt(&self.streams), Column.adopt(&self.bins)
