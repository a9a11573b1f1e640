"""What ``trace-cmd dump`` says of a trace.dat, as values, and the same values from an opened container."""

from __future__ import annotations

import re

from ftbuf.container.options import (
    BufferOption,
    OptionId,
    SectionRef,
    TextBuffer,
)

# trace-cmd's names for options, where they are not ours
NAMES = {"HEADERS": "HEADER_INFO", "FTRACE EVENTS": "FTRACE_EVENTS", "EVENT FORMATS": "EVENT_FORMATS"}


def dumped_options(text):
    """(name, payload size, what is said of its value) of every option of a ``dump --options``."""
    result = []
    for match in re.finditer(r"\t\t\[Option ([A-Z0-9_ ]+), (\d+) bytes\]([^\n]*)\n(.*?)(?=\t\t\[Option |\t\[Section |"
                             r"\t\[\d+ options\]|\Z)", text, re.S):
        result.append((NAMES.get(match[1], match[1]), int(match[2]), (match[3] + "\n" + match[4]).strip()))
    return result


def said(option, version):
    """What trace-cmd would say of the value of a decoded option."""
    value = option.value
    if isinstance(value, SectionRef):
        return f"@ {value.offset}"
    if isinstance(value, TextBuffer):
        return f'{value.offset} [offset]\n"{value.name}" [name]\n"{value.clock}" [clock]'
    if isinstance(value, BufferOption):
        head = f'{value.offset} [offset]\n"{value.name}" [name]'
        if version < 7:
            return head
        cpus = "".join(f"\n   {c.cpu} {c.offset}\t{c.size}\t[id, data offset and size]" for c in value.cpus)
        return f'{head}\n"{value.clock}" [clock]\n{value.page_size} [Page size, bytes]\n{len(value.cpus)} [CPUs]:{cpus}'
    if option.id == OptionId.TRACEID:
        return f"0x{value:X}"
    if option.id == OptionId.CPUCOUNT:
        return str(value)
    if option.id == OptionId.TSC2NSEC:
        return f"{value.mult} {value.shift} {value.offset} [multiplier, shift, offset]"
    if option.id == OptionId.DATE:
        return hex(value)
    if option.id == OptionId.CPUSTAT:
        return f"Buffer: {value.buffer}" if value.buffer is not None else f"CPU: {value.cpu}\n{value.text}".strip()
    if option.id == OptionId.PROCMAPS:
        lines = []
        for process in value.processes:
            lines.append(f"{process.pid:x} {len(process.mappings):x} {process.path}")
            lines += [f"{m.start:x} {m.end:x} {m.path}" for m in process.mappings]
        return "\n".join(lines)
    assert isinstance(value, str), option
    return value.strip()


def check_options(container, text):
    name = {22: "BUFFER"}  # trace-cmd says BUFFER for BUFFER_TEXT, too
    expected = [o for o in dumped_options(text) if o[0] != "DONE"]
    found = [(name.get(o.id, o.name), len(o.payload), said(o, container.version)) for o in container.options]
    assert found == expected


def check_summary(container, text):
    def number(pattern):
        match = re.search(pattern, text)
        return int(match[1]) if match else None

    assert f"\t{container.version}\t[Version]" in text
    assert ("[Big endian]" in text) == container.big_endian
    assert number(r"\t(\d+)\t\[Bytes in a long\]") == container.long_size
    assert number(r"\t(\d+)\t\[Page size, bytes\]") == container.page_size
    assert number(r"\[Header page, (\d+) bytes\]") == len(container.header_page)
    assert number(r"\[Header event, (\d+) bytes\]") == len(container.header_event)
    assert number(r"\[Kallsyms, (\d+) bytes\]") == len(container.kallsyms())
    assert number(r"\[Trace printk, (\d+) bytes\]") == len(container.printk_formats())
    assert number(r"\[Saved command lines, (\d+) bytes\]") == len(container.saved_cmdlines())
    index = container.format_index()
    assert number(r"\[Ftrace format, (\d+) events\]") == sum(system == "ftrace" for system, _ in index)
    assert number(r"\[Events format, (\d+) systems\]") == len({system for system, _ in index} - {"ftrace"})
    pattern = r'\[buffer "(.*?)", "(.*?)" clock, (\d+) page size, (\d+) cpus, (\d+) bytes flyrecord data\]'
    buffers = [(m[0], m[1], int(m[2]), int(m[3]), int(m[4])) for m in re.findall(pattern, text)]
    if container.version == 7:
        assert (container.compression != "none") == ("[Compression algorithm]" in text and "none" not in text)
        values = {o.value.name: o.value for o in container.options if isinstance(o.value, BufferOption)}
        assert [(b.name, b.clock, b.subbuf_size, len(b.streams), sum(c.size for c in values[b.name].cpus))
                for b in container.buffers] == buffers
    else:
        count = number(r"(\d+) \[CPUs with tracing data\]")
        if container.text is None:
            assert len(container.buffers[0].streams) == count
        match = re.search(r"\[Tracing clock\]\s+(?:\[(\S+)\]|No)", text)
        if match:
            assert container.buffers[0].clock == (match[1] or "local")
    assert ("latency" in text.lower()) == (container.text is not None)
