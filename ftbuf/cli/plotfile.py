"""--plot FILE: a picture of what a command prints."""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ..table import require
from . import UsageError


def add_plot_argument(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--plot", metavar="FILE", help="also draw it: FILE.png, .svg or .pdf (needs the extra 'plot')")


def check_plot(options: argparse.Namespace) -> None:
    """What cannot work is said before anything is read."""
    if options.plot is None:
        return
    require("matplotlib", "plot")
    from matplotlib.backend_bases import FigureCanvasBase

    known = FigureCanvasBase.get_supported_filetypes()
    if Path(options.plot).suffix[1:].lower() not in known:
        raise UsageError(f"--plot {options.plot}: the name ends in none of .{', .'.join(sorted(known))}")


def save_plot(options: argparse.Namespace, draw: Callable[[], Any]) -> None:
    """Draw, and write the picture, if one is wanted."""
    if options.plot is None:
        return
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph")  # names may have characters that the font lacks
        draw().savefig(options.plot)
