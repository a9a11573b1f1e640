"""python -m bench [core|kernels|access|startup|peers|analysis ...]: results are ratios from one run.

python -m bench peers FILE ...: of these recordings. python -m bench analysis NAME ...: of those that begin so.
python -m bench counts: instructions an event, against the baseline.
"""

from __future__ import annotations

import os
import sys
from typing import Any

from . import access, analysis, core, counts, kernels, peers, startup

PARTS = {"core": core.run, "kernels": kernels.run, "access": access.run, "startup": startup.run, "peers": peers.run,
         "analysis": analysis.run}


def show(value: Any) -> str:
    return f"{value:.2f}" if isinstance(value, float) else str(value)


def print_table(rows: list[dict[str, Any]]) -> None:
    names = list(rows[0])
    cells = [names, *([show(row[n]) for n in names] for row in rows)]
    widths = [max(len(line[i]) for line in cells) for i in range(len(names))]
    for line in cells:
        print("  ".join(cell.rjust(width) for cell, width in zip(line, widths, strict=True)))


def main(names: list[str]) -> int:
    if names[:1] == ["counts"]:
        return counts.main(names[1:])
    if names[:1] == ["peers"] and len(names) > 1:
        print_table(peers.run(names[1:]))
        return 0
    if names[:1] == ["analysis"] and len(names) > 1:
        print_table(analysis.run(names[1:]))
        return 0
    unknown = [n for n in names if n not in PARTS]
    if unknown:
        print(f"no part named {', '.join(unknown)}; there are {', '.join(PARTS)}", file=sys.stderr)
        return 2
    print(f"{os.cpu_count()} cores, Python {sys.version.split()[0]}")
    for name in names or PARTS:
        print(f"\n{name}")
        result = PARTS[name]()
        print_table(result if isinstance(result, list) else [result])
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
