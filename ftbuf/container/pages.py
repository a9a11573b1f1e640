"""What the container itself must know of sub-buffers: their size, from the text of events/header_page."""

from __future__ import annotations

import re

from ..formats import Abi, parse_header_page

MAX_SUBBUF = 16 << 20  # the commit field has 20 bits for the size (K:ring_buffer.c RB_WRITE_MASK); some room is left


def page_layout(header_page: bytes) -> Abi | None:
    """The layout that a header_page text describes (the byte order is not in it); None for kernels without one."""
    return parse_header_page(header_page, big_endian=False) if header_page.strip(b" \t\n\0") else None


def with_subbuf_size(header_page: bytes, subbuf_size: int) -> bytes:
    """The same text for a buffer whose sub-buffers have another size."""
    layout = page_layout(header_page)
    if layout is None or layout.subbuf_size == subbuf_size or subbuf_size <= layout.data_offset:
        return header_page
    size = subbuf_size - layout.data_offset
    return re.sub(rb"(\bdata;\s*offset:\d+;\s*size:)\d+", rb"\g<1>%d" % size, header_page, count=1)
