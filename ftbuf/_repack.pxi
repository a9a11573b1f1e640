# Rewriting sub-buffers: part of _core.pyx, where everything it uses is imported.

@cython.final
cdef class Repacker:
    """Sub-buffers of one CPU in, sub-buffers with the wanted records out. Arguments as those of Decoder; slots are what `filters`,
    one program per slot (None: all records), are for."""

    cdef ftb_repack r
    cdef ftb_abi abi
    cdef ftb_clock clock
    cdef list keep
    cdef Pages segment

    def __cinit__(self, abi, clock, slot_of, window=None, pids=None, size_t page_size=0, filters=None, uint32_t cpu=0):
        self.keep = []
        set_abi(&self.abi, abi)
        set_clock(&self.clock, clock, self.keep)
        set_select(&self.r.select, slot_of, window, pids, self.keep)
        if filters is not None:
            set_filters(&self.r.select, filters, len(filters), self.keep)
        self.r.stream.cpu = cpu
        self.r.stream.abi, self.r.stream.clock, self.r.stream.last_ts = &self.abi, &self.clock, INT64_MIN
        self.r.page_size = max(page_size, <size_t>self.abi.subbuf_size)
        self.r.page = <uint8_t *>allocate(self.r.page_size, 1)

    def __dealloc__(self):
        PyMem_Free(<void *>self.r.select.filter_of_slot)
        ftb_column_free(&self.r.out)
        ftb_column_free(&self.r.report.problems)
        ftb_column_free(&self.r.report.losses)
        PyMem_Free(self.r.page)

    def feed(self, Pages pages not None, uint64_t file_offset, size_t start=0, size_t stop=<size_t>-1):
        """The next segment: bytes start to stop of pages."""
        stop = min(stop, <size_t>pages.view.len)
        start = min(start, stop)
        ftb_stream_feed(&self.r.stream, <const uint8_t *>pages.view.buf + start, stop - start, file_offset + start, False)
        self.segment = pages

    def step(self, uint32_t max_pages):
        """Go on for some pages; False when the segment is used up."""
        cdef int status
        with nogil:
            status = ftb_repack_pages(&self.r, max_pages)
        if status == FTB_NO_MEMORY:
            raise MemoryError
        return status == FTB_OK

    def flush(self):
        """Put out the page being built."""
        if ftb_repack_flush(&self.r) != FTB_OK:
            raise MemoryError

    def take(self):
        """Whole pages made since the last call."""
        return Column.adopt(&self.r.out)

    def take_problems(self):
        """As Decoder.take_problems."""
        return Column.adopt(&self.r.report.problems)

    def counts(self):
        """Records kept, pages copied whole, pages built anew."""
        return self.r.records, self.r.copied, self.r.rebuilt
