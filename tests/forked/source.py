"""`python -m tests.forked.source PROGRAM ARGUMENT…` is `python -c PROGRAM ARGUMENT…`, which can be forked so."""

import sys

_, _program, *_arguments = sys.argv
sys.argv[:] = ["-c", *_arguments]
exec(compile(_program, "<string>", "exec"))  # noqa: S102 - what it is for
