"""The command `serve`."""

from __future__ import annotations

import gc
import logging
from argparse import Namespace

from notebook_sync.surfaces.cli.answers import opened


def serve(arguments: Namespace) -> int:
    """Serve until asked to end; the exit code is returned."""
    gc.disable()  # to look for garbage among what an import makes takes an eighth of the time, and there is hardly any
    from notebook_sync.surfaces.serving import serve as serving  # it takes a second, and no other command needs it

    gc.enable()
    logging.basicConfig(format="%(asctime)s %(levelname)s %(message)s")
    logging.getLogger("notebook_sync").setLevel(logging.INFO)
    with opened(arguments) as notebook:
        settings = notebook.settings.server
        serving.serve(
            notebook,
            host=arguments.host or settings.host,
            port=settings.port if arguments.port is None else arguments.port,
            watch=not arguments.no_watch,
            say=lambda line: print(line, flush=True),
        )
    serving.leave()
    return 0
