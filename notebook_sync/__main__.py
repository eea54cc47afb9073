"""The command `notebook-sync`, also as `python -m notebook_sync`. `--version` is answered before anything is loaded."""

from __future__ import annotations

import sys


def main() -> int:
    """Run the command line of this process; the exit code is returned."""
    if sys.argv[1:] == ["--version"]:
        from notebook_sync import __version__

        if sys.stdout is not None:  # as where it was closed before
            sys.stdout.write(f"notebook-sync {__version__}\n")
        return 0
    from notebook_sync.surfaces.cli.main import run

    return run(sys.argv[1:])


if __name__ == "__main__":
    sys.exit(main())
