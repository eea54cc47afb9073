"""The process that stands for a forked command: asks for it, passes signals on, and ends as it ended.

Started as `python -IS shim.py SOCKET MODULE ARGUMENT…`, thousands of times, so it imports only what is built in.
"""

import _signal
import _socket
import posix
import sys

_FORWARDED = (_signal.SIGHUP, _signal.SIGINT, _signal.SIGQUIT, _signal.SIGTERM)
_INT = 4


def ask(asked, words, environ, place, streams, ignored):  # type: ignore[no-untyped-def]  # types cost an import
    """Ask for a command: its words and variables, each parted by NUL, its folder, its streams where it has them."""
    mask = posix.umask(0o077)
    posix.umask(mask)
    present = [number for number, stream in enumerate(streams) if stream is not None]
    head = b" ".join(
        b",".join(b"%d" % number for number in numbers)
        for numbers in ([mask], present, ignored, [len(words)], [len(environ)])
    )
    message = b"%s\n%s%s" % (head, words, environ)
    passed = [place, *(streams[number] for number in present)]
    rights = b"".join(number.to_bytes(_INT, sys.byteorder) for number in passed)
    sent = asked.sendmsg([message], [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, rights)])
    if sent < len(message):  # what takes nothing more may have ended by now
        asked.sendall(message[sent:])


def ended(asked):  # type: ignore[no-untyped-def]
    """Wait for the command's end: its exit code, or what killed it as a negative number."""
    told = asked.recv(_INT, _socket.MSG_WAITALL)
    if len(told) < _INT:
        raise SystemExit("the server of forked commands has ended")
    return int.from_bytes(told, sys.byteorder, signed=True)


def _main():  # type: ignore[no-untyped-def]
    streams = [number if _is_open(number) else None for number in range(3)]
    ignored = [number for number in _FORWARDED if _signal.getsignal(number) == _signal.SIG_IGN]
    _, _, _, address, words = _read(b"/proc/self/cmdline").split(b"\0", 4)
    asked = _socket.socket(_socket.AF_UNIX)
    asked.connect(address)
    for number in _FORWARDED:  # those that are ignored here, too: the command may listen to them all the same
        _signal.signal(number, lambda number, _: asked.send(bytes([number])))
    place = posix.open(".", posix.O_PATH)
    ask(asked, words.removesuffix(b"\0"), _read(b"/proc/self/environ").removesuffix(b"\0"), place, streams, ignored)
    for number in streams:
        if number is not None:
            posix.close(number)  # the command alone holds them, so that whoever is at their other end sees it end
    code = ended(asked)
    if code < 0:
        if -code != _signal.SIGKILL:
            _signal.signal(-code, _signal.SIG_DFL)
        posix.kill(posix.getpid(), -code)
    posix._exit(code)


def _is_open(number):  # type: ignore[no-untyped-def]
    try:
        posix.fstat(number)
    except OSError:
        return False
    return True


def _read(path):  # type: ignore[no-untyped-def]
    file = posix.open(path, posix.O_RDONLY)
    try:
        pieces = []
        while piece := posix.read(file, 1 << 16):
            pieces.append(piece)
        return b"".join(pieces)
    finally:
        posix.close(file)


if __name__ == "__main__":
    _main()
