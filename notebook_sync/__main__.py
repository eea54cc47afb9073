"""The command `notebook-sync`, also as `python -m notebook_sync`. `--version` answers before anything is loaded."""

from __future__ import annotations

import sys

_INTERRUPTED = 130


def main() -> int:
    """Run the command line of this process; the exit code is returned."""
    if sys.argv[1:] == ["--version"]:
        from notebook_sync import __version__

        if sys.stdout is not None:  # closed by the caller, as in `notebook-sync --version >&-`
            sys.stdout.write(f"notebook-sync {__version__}\n")
        return 0
    import gc

    gc.set_threshold(200_000)  # most objects of a command live until it ends, and few are in cycles
    try:
        from notebook_sync.surfaces.cli.main import run

        return run(sys.argv[1:])
    except KeyboardInterrupt:  # also while modules are loaded
        return _INTERRUPTED
    finally:
        gc.freeze()  # else Python looks through all of them for cycles when it ends


if __name__ == "__main__":
    sys.exit(main())
