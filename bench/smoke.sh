#!/usr/bin/env bash
# For CI: that the benchmarks run, and that no kernel needs more instructions an event than the committed baseline says.
# With the package as it is installed, not with the source tree beside this file.
set -euo pipefail
tree=$(cd "$(dirname "$0")/.." && pwd)
python=${PYTHON:-$tree/.venv/bin/python}
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
ln -s "$tree/bench" "$folder/bench"
cd "$folder" && "$python" -m bench counts
