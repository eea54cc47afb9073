"""What a process beside this program runs: a command that breaks off when it is asked to, whatever signals whoever
started this program had it ignore, as a shell has what it starts with `&` ignore SIGINT.
"""

from __future__ import annotations

import signal
import sys
from typing import Any


def _break_off(*_: Any) -> None:
    # A terminal asks, too, and whoever is asked twice would end without ending what it has started.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)
    raise KeyboardInterrupt


def _main() -> int:
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, _break_off)
    # By now, whoever asks is heard.
    from notebook_sync.notebook import Notebook
    from notebook_sync.surfaces.cli.main import run

    _, folder, *words = sys.argv[1:]
    try:
        if words != ["embed"]:
            return run(sys.argv[1:])
        with Notebook.open(folder) as notebook:
            notebook.admin.embed()
        return 0
    except KeyboardInterrupt:
        return 128 + signal.SIGINT


if __name__ == "__main__":
    sys.exit(_main())
