"""Run one change again and again, in a process that is killed one step later each time, until it is not.

Prints `[{"folder", "signal"}]`. A process of its own, because only one without threads may fork.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from pathlib import Path

from notebook_sync.files.vault import Vault
from tests.files.disks import fused_disk
from tests.files.test_writing import CHANGES, OLD
from tests.sync.faults import Fuse


def main(top: Path, change: str) -> None:
    ends = []
    for after in (False, True):
        at = 0
        status = -1
        while status:
            at += 1
            root = top / f"{'after' if after else 'before'}-{at}"
            (root / "harbour").mkdir(parents=True)
            (root / "harbour" / "ferry.md").write_bytes(OLD)
            child = os.fork()
            if child == 0:
                vault, fuse = Vault(root), Fuse()
                vault.disk = fused_disk(fuse)
                fuse.set(lambda: os.kill(os.getpid(), signal.SIGKILL), at=at, after=after)
                CHANGES[change](vault)
                os._exit(0)
            _, status = os.waitpid(child, 0)
            ends.append({"folder": root.name, "signal": os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0})
    print(json.dumps(ends))


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
