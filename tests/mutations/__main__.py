"""`python -m tests.mutations`: take out each guarantee in turn, in a copy, and demand that the tests named for it fail.

A mutation whose text is no longer in its file is an error: it is to be kept in step with the code.
"""

from __future__ import annotations

import argparse
import compileall
import os
import py_compile
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from queue import SimpleQueue

from tests.mutations.prompt import MUTATIONS, Mutation

ROOT = Path(__file__).parents[2]
COPIED = ("notebook_sync", "prompt", "runtime_templates", "tests", "pyproject.toml")
AT_ONCE = 2
# pytest's exit code when tests ran and some failed; any other says that none of them could judge.
TESTS_FAILED = 1


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.mutations", description=__doc__)
    parser.add_argument("--only", default="", metavar="WORD", help="those with WORD in their name")
    word = parser.parse_args().only
    chosen = [mutation for mutation in MUTATIONS if word in mutation.name]
    with tempfile.TemporaryDirectory(prefix="notebook-mutations-") as folder:
        copies: SimpleQueue[Path] = SimpleQueue()
        for number in range(AT_ONCE):
            copies.put(_copy(Path(folder) / str(number)))
        with ThreadPoolExecutor(AT_ONCE) as pool:
            verdicts = list(pool.map(partial(_judged, copies), chosen))
    wrong = [verdict for verdict in verdicts if verdict]
    print(f"{len(chosen) - len(wrong)} of {len(chosen)} guarantees are missed when they are gone")
    return 1 if wrong or not chosen else 0


def _judged(copies: SimpleQueue[Path], mutation: Mutation) -> str:
    """What is wrong with the mutation or its tests, "" when they notice it; printed as well."""
    copy = copies.get()
    try:
        verdict = _verdict(copy, mutation)
    finally:
        copies.put(copy)
    print(f"{'NOT ' if verdict else ''}noticed: {mutation.name}{verdict and f': {verdict}'}", flush=True)
    return verdict


def _verdict(copy: Path, mutation: Mutation) -> str:
    file = copy / mutation.file
    before = file.read_text(encoding="utf-8")
    found = before.count(mutation.old)
    if found != 1:
        return f"its text stands {found} times in {mutation.file}"
    file.write_text(before.replace(mutation.old, mutation.new), encoding="utf-8")
    try:
        done = _pytest(copy, mutation.tests)
    finally:
        file.write_text(before, encoding="utf-8")
    if done.returncode == TESTS_FAILED:
        return ""
    return f"pytest ended with {done.returncode}\n{done.stdout[-2000:]}"


def _pytest(copy: Path, tests: tuple[str, ...]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", "--tb=line", *tests],
        cwd=copy,
        env={**os.environ, "PYTHONPATH": str(copy), "PYTHONDONTWRITEBYTECODE": "1"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )


def _copy(folder: Path) -> Path:
    folder.mkdir()
    ignore: Callable[..., set[str]] = shutil.ignore_patterns("__pycache__", ".hypothesis")
    for name in COPIED:
        source = ROOT / name
        if source.is_dir():
            shutil.copytree(source, folder / name, ignore=ignore)
        else:
            shutil.copy(source, folder / name)
    # By the hash of the source: a mutation may take no longer than a file's time can tell.
    compileall.compile_dir(folder, quiet=1, invalidation_mode=py_compile.PycInvalidationMode.CHECKED_HASH)
    return folder


if __name__ == "__main__":
    sys.exit(main())
