# Part of _core.pyx: kernel symbols.
from ftbuf._ckallsyms cimport *


def read_kallsyms(bytes text not None):
    """The lines of a text of kallsyms: (uint64 addresses, types, int64 places of names, int64 places of modules, texts)."""
    cdef ftb_kallsyms found
    cdef const char *start = text
    cdef size_t size = len(text)
    memset(&found, 0, sizeof(found))
    try:
        with nogil:
            status = ftb_kallsyms_read(start, size, &found)
        if status != FTB_OK:
            raise MemoryError
        texts = PyBytes_FromStringAndSize(<const char *>found.texts.data, found.texts.size)
        return (Column.adopt(&found.addresses), Column.adopt(&found.types), Column.adopt(&found.names),
                Column.adopt(&found.modules), texts)
    finally:
        ftb_kallsyms_free(&found)
