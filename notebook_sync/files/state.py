"""Where a notebook is: its folder, its root above any folder, and the state folder that belongs to it outside the tree.

State is never kept in the tree: `git clean`, sync clients and network shares must not reach it.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
import re
import tomllib
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec

from notebook_sync.errors import NotANotebook, ReadOnly
from notebook_sync.files.locks import FileLock
from notebook_sync.files.private import FOLDER, read_json, read_private, write_private
from notebook_sync.model import SETTINGS_FILE

_PLACE = "place.json"
_FINDINGS = "findings.json"
_ID_FILE = "id"
_ADVICE = "set NOTEBOOK_STATE_DIR to a local folder that you can write, or give this one to your user"
_LOCK_SECONDS = 5.0
# With fewer bytes on its disk than this, an index soon fails.
_LEAST_FREE = 1 << 20
# Locks and SQLite's shared memory do not work there, or not between hosts.
_NETWORK = re.compile(r"(fuse\.)?(nfs\d?|cifs|smb\d?|smbfs|9p|afs|ceph|glusterfs|lustre|sshfs|rclone|s3fs|davfs\d?)")


class Place(msgspec.Struct, frozen=True):
    """A notebook's folders. `notebook_id` is the notebook's, also in its copies; `replica` is this index's alone; both
    are "" before `open` made them. `read_only`: nothing can be written in the tree."""

    root: Path
    state: Path
    notebook_id: str = ""
    replica: str = ""
    read_only: bool = False

    @classmethod
    def find(cls, root: Path) -> Place:
        """The place of the notebook at `root`, as far as it is known. Writes nothing."""
        root = root.resolve()
        notebook_id = _id_in_tree(root)
        state = state_home() / _folder_name(root)
        known = _known(state)
        if notebook_id not in ("", known.get("notebook_id")):
            state, known = _moved(notebook_id) or (state, {})
        private = root / FOLDER
        read_only = not os.access(private if private.is_dir() else root, os.W_OK | os.X_OK)
        return cls(root, state, notebook_id or known.get("notebook_id", ""), known.get("replica", ""), read_only)

    @classmethod
    def open(cls, root: Path) -> Place:
        """As `find`, and make what is missing: `.notebook` (unless the tree cannot be written), the state folder, the
        ids. A moved notebook takes its state along; the state of another notebook at this path is set aside.

        Raises ReadOnly where no state can be kept, UnsafePath where `.notebook` is a symbolic link.
        """
        states = state_home()
        lock = FileLock(states / "lock")
        try:
            states.mkdir(0o700, parents=True, exist_ok=True)
            if not os.access(states, os.W_OK | os.X_OK):
                raise PermissionError(errno.EACCES, "permission denied")
            if _NETWORK.fullmatch(kind := file_system(states)):
                raise ReadOnly(str(states), f"it is on a network file system ({kind})", next=_ADVICE)
            lock.acquire(_LOCK_SECONDS)  # two commands that start at once agree on the ids
            return cls.find(root)._made()
        except OSError as error:
            raise ReadOnly(str(states), f"{error.strerror}".lower(), next=_ADVICE) from None
        finally:
            lock.release()

    @property
    def private(self) -> Path:
        """`.notebook` in the tree: locks, copies, caches; all of it can be made again."""
        return self.root / FOLDER

    @property
    def index_path(self) -> Path:
        """The SQLite file."""
        return self.state / "index.db"

    @property
    def lock_folder(self) -> Path:
        """Where lock files are: with the tree, so that every process meets them, whatever state folder it uses."""
        return self.state if self.read_only else self.private

    def findings(self) -> dict[str, Any]:
        """What was found out, by name: `mounts`, `generations` …"""
        return read_json(self.state / _FINDINGS)

    def remember(self, **findings: Any) -> None:
        """Add JSON values to `findings`. Raises OSError."""
        write_private(self.state / _FINDINGS, json.dumps(self.findings() | findings).encode())

    def _made(self) -> Place:
        """Make what is missing."""
        own = state_home() / _folder_name(self.root)
        place = msgspec.structs.replace(
            self,
            state=own,
            notebook_id=self.notebook_id or os.urandom(8).hex(),
            replica=self.replica or os.urandom(8).hex(),
        )
        if own.exists() and (self.state != own or (_known(own) and not self.replica)):
            own.rename(f"{own}.{os.urandom(4).hex()}")
        if self.state.exists() and self.state != own:
            self.state.rename(own)
        known = {"notebook_id": place.notebook_id, "replica": place.replica, "root": str(place.root)}
        write_private(own / _PLACE, json.dumps(known).encode())
        if not place.read_only:
            write_private(place.private / _ID_FILE, f"{place.notebook_id}\n".encode())
        return place


def expanded(path: str | Path) -> Path:
    """A path as a person writes it, with `~`. That of an unknown user is left as it is."""
    return Path(os.path.expanduser(path))  # noqa: PTH111 - Path's own raises for an unknown user


def home_folder() -> Path:
    """The user's home folder; "/" where there is none, as for some users of containers."""
    home = expanded("~")
    return home if home.is_absolute() else Path("/")


def state_home() -> Path:
    """The folder of all state folders of this user."""
    if named := os.environ.get("NOTEBOOK_STATE_DIR"):
        return expanded(named).absolute()
    xdg = os.environ.get("XDG_STATE_HOME")
    return (Path(xdg) if xdg else home_folder() / ".local" / "state") / "notebook-sync"


def find_root(start: Path, *, adopt: bool = False) -> Path:
    """The notebook that `start` is in: the nearest folder, from there upwards, with `notebook.toml` or `.notebook`.

    With `adopt`, a bare folder becomes one; never `/` or the home folder. Raises NotANotebook.
    """
    try:
        start = expanded(start).resolve()
    except FileNotFoundError:
        raise NotANotebook("the folder that you are in was deleted", next="go to one that exists, with cd") from None
    if not start.is_dir():
        raise NotANotebook(f"{start} is not a folder", next="name the notebook's folder with -C DIR")
    for folder in (start, *start.parents):
        if (folder / SETTINGS_FILE).is_file() or (folder / FOLDER).is_dir():
            return folder
    if _known(state_home() / _folder_name(start)):  # a folder that cannot be written has no mark in it
        return start
    if not adopt:
        raise NotANotebook(f"{start} is not in a notebook", next="run: notebook-sync init DIR, or name one with -C DIR")
    if start in (Path(start.anchor), home_folder().resolve()):
        reason = f"{start} cannot be a notebook, since it is / or your home folder ($HOME)"
        raise NotANotebook(reason, next="name a folder in it, as in: notebook-sync init DIR")
    return start


def file_system(path: Path) -> str:
    """The kind of file system that `path` is on, as the kernel names it (`ext4`, `nfs4`); "" where that is unknown."""
    try:
        device = path.stat().st_dev
        mounts = Path("/proc/self/mountinfo").read_text(errors="replace").splitlines()
    except OSError:
        return ""
    number = f"{os.major(device)}:{os.minor(device)}"
    return next((line.partition(" - ")[2].split(" ")[0] for line in mounts if line.split(" ")[2] == number), "")


def _folder_name(root: Path) -> str:
    name = re.sub(r"[^\w.-]+", "-", root.name)[:60] or "root"
    return f"{name}-{hashlib.sha256(os.fsencode(root)).hexdigest()[:8]}"


def why_not_writable(folder: Path) -> str:
    """Why nothing can be written in a folder; "" where its file system names no reason."""
    if not os.access(folder, os.W_OK):
        return f"{folder} cannot be written"
    disk = os.statvfs(folder)
    return f"{folder} is on a disk that is full" if disk.f_bavail * disk.f_frsize < _LEAST_FREE else ""


def _moved(notebook_id: str) -> tuple[Path, dict[str, str]] | None:
    """The state folder of a notebook with this id that is no longer where it was, or was set aside there. An empty
    folder is where a disk or a volume was mounted."""
    for place in sorted(state_home().glob(f"*/{_PLACE}")):
        known = _known(place.parent)
        root = Path(known.get("root", "/"))
        has_left = not any(root.glob("*")) or place.parent.name != _folder_name(root)
        if known.get("notebook_id") == notebook_id and has_left:
            return place.parent, known
    return None


def _known(state: Path) -> dict[str, str]:
    """`{notebook_id, replica, root}` of a state folder, {} where it is none."""
    known = read_json(state / _PLACE)
    return known if all(isinstance(known.get(name), str) for name in ("notebook_id", "replica", "root")) else {}


def _id_in_tree(root: Path) -> str:
    """The id that notebook.toml names, else the one in `.notebook`; "" for none."""
    with suppress(OSError, ValueError, AttributeError):
        named = tomllib.loads((root / SETTINGS_FILE).read_text(encoding="utf-8-sig")).get("notebook", {}).get("id")
        if isinstance(named, str) and named:
            return named
    with suppress(OSError):
        return (read_private(root / FOLDER / _ID_FILE) or b"").decode(errors="replace").strip()
    return ""
