"""Write ftbuf/syscallnumbers.py: the names of system calls by number, of the machines that people trace.

    python tools/make_syscall_numbers.py INCLUDE

INCLUDE holds the kernel's headers for programs of many machines, as `MACHINE-linux-any/asm/unistd*.h`: the folder
`lib/libc/include` of the Zig compiler, say (`pip download ziglang`, and unpack the wheel).
"""

from __future__ import annotations

import re
import sys
import textwrap
from pathlib import Path

# name of the table -> header, and what its numbers begin at
HEADERS = {
    "x86_64": ("x86", "unistd_64.h", 0), "i386": ("x86", "unistd_32.h", 0), "generic": ("aarch64", "unistd_64.h", 0),
    "riscv": ("riscv", "unistd_64.h", 0), "arm": ("arm", "unistd-eabi.h", 0), "s390x": ("s390x", "unistd_64.h", 0),
    "powerpc": ("powerpc", "unistd_64.h", 0), "mips_o32": ("mips", "unistd_o32.h", 4000),
    "mips_n64": ("mips", "unistd_n64.h", 5000), "mips_n32": ("mips", "unistd_n32.h", 6000),
}
SHARED = 424  # from here on all machines have the same numbers (K:Documentation/process/adding-syscalls.rst)
HEADING = '''\
"""Names of system calls by number: written by tools/make_syscall_numbers.py, from the kernel's headers for programs."""

from __future__ import annotations

# Where a table's numbers begin.
'''
BODY = '''
# "0: read write 5: fstat": of each table the calls that only its machines have; "shared": those that all have.
NUMBERS = {
'''
_DEFINE = re.compile(r"#define __NR_(\w+)\s+(?:\(__NR_(?:Linux|SYSCALL_BASE)\s*\+\s*(\d+)\)|(\d+))")


def read(path: Path) -> dict[int, str]:
    """Number, from the machine's first one on -> name."""
    found: dict[int, str] = {}
    for name, relative, absolute in _DEFINE.findall(path.read_text()):
        if name != "syscalls":
            found.setdefault(int(relative or absolute), name)
    return found


def runs(names: dict[int, str]) -> str:
    """"0: read write 5: fstat": a number where names do not follow one another."""
    words, after = [], -1
    for number, name in sorted(names.items()):
        words += [name] if number == after else [f"{number}:", name]
        after = number + 1
    return " ".join(words)


def written(name: str, text: str) -> str:
    body = textwrap.fill(text, 118, initial_indent="    ", subsequent_indent="    ", break_long_words=False)
    return f'    "{name}": """\n{body}\n    """,\n'


def main(include: Path) -> None:
    tables = {name: read(include / f"{machine}-linux-any" / "asm" / header) for name, (machine, header, _) in HEADERS.items()}
    shared = {number: name for number, name in tables["generic"].items() if number >= SHARED}
    own = {name: {number: call for number, call in table.items() if shared.get(number) != call}
           for name, table in tables.items()}
    own["riscv"] = {number: call for number, call in own["riscv"].items() if own["generic"].get(number) != call}
    first = ", ".join(f'"{name}": {number}' for name, (_, _, number) in HEADERS.items() if number)
    text = HEADING + f"FIRST = {{{first}}}\n" + BODY
    text += "".join(written(name, runs(calls)) for name, calls in [("shared", shared), *own.items()]) + "}\n"
    (Path(__file__).parent.parent / "ftbuf" / "syscallnumbers.py").write_text(text)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
