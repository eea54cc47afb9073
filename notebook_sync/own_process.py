"""What another process of this program runs in. Nothing is started here."""

from __future__ import annotations

import os
import sys


def own_environment() -> dict[str, str]:
    """This process's environment, in which another Python finds the modules that this one does: beside `-P`, without
    which a file of the folder we stand in, which may be a notebook, could pass for a module."""
    return {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
