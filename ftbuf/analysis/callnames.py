"""Names of system calls where no event of the recording tells them: by the numbers of the machine."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from ..trace import Trace

# `uname -m` -> tables of syscallnumbers. The numbers of the ABIs of MIPS do not overlap.
MACHINES = {
    "x86_64": ("x86_64",), "amd64": ("x86_64",), r"i[3-6]86": ("i386",), r"arm(v\d\w*)?": ("arm",), "s390x": ("s390x",),
    "aarch64": ("generic",), "loongarch64": ("generic",), "riscv64": ("generic", "riscv"), r"ppc64(le)?": ("powerpc",),
    r"mips(64)?(el)?": ("mips_o32", "mips_n64", "mips_n32"),
}
X32 = 1 << 30  # K:arch/x86/include/uapi/asm/unistd.h __X32_SYSCALL_BIT
X32_OWN = 512  # numbers below it are those of other programs


def machine_tables(trace: Trace) -> Sequence[str]:
    """The tables of the traced machine; none where the recording does not tell what it was."""
    container = trace.recording.container
    for word in reversed(container.uname.split()[-2:]):  # "... x86_64", "... x86_64 GNU/Linux"
        for machine, tables in MACHINES.items():
            if re.fullmatch(machine, word):
                return tables
    if b"x86-tsc" in (container.tracing_file("trace_clock") or b""):
        return ("x86_64",) if trace.recording.abi.long_size == 8 else ("i386",)
    return ()


def machine_calls(trace: Trace) -> dict[int, str]:
    """Number -> name of all calls of the traced machine's own programs."""
    from ..syscallnumbers import FIRST, NUMBERS

    found: dict[int, str] = {}
    tables = machine_tables(trace)
    for table in tables:
        first = FIRST.get(table, 0)
        found |= {first + number: name for number, name in numbered(NUMBERS["shared"])}
        found |= {first + number: name for number, name in numbered(NUMBERS[table])}
    if "x86_64" in tables:
        found |= {X32 | number: name for number, name in found.items() if number < X32_OWN}
    return found


def numbered(text: str) -> Iterator[tuple[int, str]]:
    """"0: read write 5: fstat" -> (0, "read"), (1, "write"), (5, "fstat")."""
    number = 0
    for word in text.split():
        if word.endswith(":"):
            number = int(word[:-1])
        else:
            yield number, word
            number += 1
