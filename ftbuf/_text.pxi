# Part of _core.pyx: programs of expressions and print formats, and the tables that their text needs.
from libc.string cimport memcpy

from ftbuf._ctext cimport *


@cython.final
cdef class Program:
    """A verified block of bytecode."""

    cdef ftb_program program
    cdef void *block
    cdef readonly Py_ssize_t size

    def __cinit__(self, bytes block not None):
        self.size = len(block)
        self.block = allocate(self.size, 1)  # aligned, as bytes need not be
        memcpy(self.block, <const char *>block, self.size)
        if ftb_program_open(self.block, self.size, &self.program) != FTB_OK:
            raise ValueError("not a valid program")

    def __dealloc__(self):
        PyMem_Free(self.block)

    @property
    def emits(self):
        """It writes text."""
        return self.program.emits

    @property
    def result(self):
        """It leaves a value: a filter."""
        return self.program.result


@cython.final
cdef class TextTables:
    """What programs can look up: symbols, strings and trace_printk formats by kernel address, names by pid.

    What is supplied stays; tables that no program reads need not be supplied. The guessed depths of traced functions change:
    one report at a time may use tables made with ``cpus``.

    Parameters
    ----------
    symbols : tuple of buffers or None
        uint64 addresses, uint64 ends, uint32 offsets of names, uint32 offsets of exact names, texts.
    strings : tuple of buffers or None
        uint64 addresses, uint32 offsets (one more), texts.
    printk : tuple or None
        uint64 addresses, list of Program.
    comms : tuple of buffers or None
        int32 pids, uint32 offsets (one more), texts.
    cpus : int
        How many CPUs to keep depths of calls for.
    """

    cdef ftb_symbols symbols
    cdef ftb_strings strings
    cdef ftb_printk printk
    cdef ftb_tasks comms
    cdef const ftb_program **programs
    cdef ftb_calls *calls
    cdef uint32_t n_calls
    cdef list keep

    def __cinit__(self, symbols=None, strings=None, printk=None, comms=None, *, uint32_t cpus=0):
        self.keep = []
        self.calls = <ftb_calls *>allocate(cpus, sizeof(ftb_calls))
        self.n_calls = cpus
        self.supply(symbols, strings, printk, comms)

    def supply(self, symbols=None, strings=None, printk=None, comms=None):
        """Add tables, before the first program that reads them is run."""
        if symbols is not None:
            addresses, ends, names, exact, texts = (self._hold(b) for b in symbols)
            self._set_symbols(addresses, ends, names, exact, texts)
        if strings is not None:
            addresses, offsets, texts = (self._hold(b) for b in strings)
            self._set_strings(addresses, offsets, texts)
        if printk is not None:
            self._set_printk(self._hold(printk[0]), printk[1])
        if comms is not None:
            pids, offsets, texts = (self._hold(b) for b in comms)
            self._set_comms(pids, offsets, texts)

    def __dealloc__(self):
        PyMem_Free(self.programs)
        PyMem_Free(self.calls)

    cdef Pages _hold(self, source):
        cdef Pages pages = Pages(source)
        self.keep.append(pages)
        return pages

    cdef _set_symbols(self, Pages addresses, Pages ends, Pages names, Pages exact, Pages texts):
        cdef Py_ssize_t n = addresses.view.len // 8
        if ends.view.len != 8 * n or names.view.len != 4 * n or exact.view.len != 4 * n or max(n, texts.view.len) >> 32:
            raise ValueError("columns of symbols differ in length")
        self.symbols.addresses = <const uint64_t *>addresses.view.buf
        self.symbols.ends = <const uint64_t *>ends.view.buf
        self.symbols.names = <const uint32_t *>names.view.buf
        self.symbols.exact = <const uint32_t *>exact.view.buf
        self.symbols.texts = <const char *>texts.view.buf
        self.symbols.texts_size = <uint32_t>texts.view.len
        self.symbols.count = <uint32_t>n

    cdef _set_strings(self, Pages addresses, Pages offsets, Pages texts):
        cdef Py_ssize_t n = addresses.view.len // 8
        if offsets.view.len != 4 * (n + 1) or max(n, texts.view.len) >> 32:
            raise ValueError("columns of strings differ in length")
        self.strings.addresses = <const uint64_t *>addresses.view.buf
        self.strings.offsets = <const uint32_t *>offsets.view.buf
        self.strings.texts = <const char *>texts.view.buf
        self.strings.texts_size = <uint32_t>texts.view.len
        self.strings.count = <uint32_t>n

    cdef _set_comms(self, Pages pids, Pages offsets, Pages texts):
        cdef Py_ssize_t n = pids.view.len // 4
        if offsets.view.len != 4 * (n + 1) or max(n, texts.view.len) >> 32:
            raise ValueError("columns of comms differ in length")
        self.comms.pids = <const int32_t *>pids.view.buf
        self.comms.offsets = <const uint32_t *>offsets.view.buf
        self.comms.texts = <const char *>texts.view.buf
        self.comms.texts_size = <uint32_t>texts.view.len
        self.comms.count = <uint32_t>n

    cdef _set_printk(self, Pages addresses, list programs):
        cdef Py_ssize_t n = addresses.view.len // 8
        cdef Program program
        if len(programs) != n or n >> 32:
            raise ValueError("columns of formats differ in length")
        PyMem_Free(self.programs)
        self.programs = <const ftb_program **>allocate(n, sizeof(void *))
        for i, program in enumerate(programs):
            self.programs[i] = &program.program
        self.keep.append(list(programs))
        self.printk.addresses = <const uint64_t *>addresses.view.buf
        self.printk.programs = self.programs
        self.printk.count = <uint32_t>n

    cdef void fill(self, ftb_text_context *context) noexcept nogil:
        """Let a context look things up here."""
        context.symbols = &self.symbols
        context.strings = &self.strings
        context.printk = &self.printk
        context.comms = &self.comms
        context.calls = self.calls
        context.n_calls = self.n_calls


@cython.final
cdef class Renderer:
    """Runs programs on single records. For one thread at a time."""

    cdef ftb_text_context context
    cdef ftb_text text
    cdef ftb_symbol_cache *cache
    cdef TextTables tables

    def __cinit__(self, TextTables tables not None):
        self.tables = tables
        tables.fill(&self.context)
        self.cache = <ftb_symbol_cache *>allocate(1, sizeof(ftb_symbol_cache))
        ftb_symbol_cache_reset(self.cache)
        self.context.cache = self.cache

    def __dealloc__(self):
        ftb_text_free(&self.text)
        PyMem_Free(self.cache)

    cdef void set_record(self, ts, cpu, pid, bytes comm) except *:
        self.context.ts, self.context.cpu, self.context.pid = ts, cpu, pid
        self.context.comm = <const char *>comm
        self.context.comm_size = <uint32_t>len(comm)

    def body(self, Program program not None, payload, *, ts=0, cpu=0, pid=0, bytes comm=b""):
        """The text of one record as bytes; the name of a status when the record is damaged."""
        cdef Pages pages = Pages(payload)
        cdef int status
        self.set_record(ts, cpu, pid, comm)
        self.text.len = 0
        self.text.status = FTB_OK
        status = ftb_render_body(&program.program, &self.context, <const uint8_t *>pages.view.buf, pages.view.len, &self.text)
        if status != FTB_OK:
            return STATUSES[status]
        return PyBytes_FromStringAndSize(self.text.data, self.text.len)

    def value(self, Program program not None, payload, *, ts=0, cpu=0, pid=0, bytes comm=b""):
        """The value of a filter for one record; the name of a status when the record is damaged."""
        cdef Pages pages = Pages(payload)
        cdef int64_t value = 0
        cdef int status
        self.set_record(ts, cpu, pid, comm)
        status = ftb_eval(&program.program, &self.context, <const uint8_t *>pages.view.buf, pages.view.len, &value)
        return value if status == FTB_OK else STATUSES[status]
