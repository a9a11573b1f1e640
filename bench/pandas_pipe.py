"""What scripts do today: text of trace-cmd report on stdin, one regular expression a line, a DataFrame in the end."""

from __future__ import annotations

import re
import sys

import pandas as pd

LINE = re.compile(r"\s*(?P<comm>.{1,16})-(?P<pid>\d+)\s+\[(?P<cpu>\d+)\]\s+(?:\S+\s+)?(?P<ts>\d+\.\d+):\s+"
                  r"(?P<event>\w+):\s*(?P<body>.*)")
FIELD = re.compile(r"(\w+)=(\S+)")

rows = []
for line in sys.stdin:
    match = LINE.match(line)
    if match is not None:
        row = match.groupdict()
        row.update(FIELD.findall(row.pop("body")))
        rows.append(row)
frame = pd.DataFrame(rows)
frame["ts"] = frame["ts"].astype(float)
print(len(frame))
