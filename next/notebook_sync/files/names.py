"""What file names mean: notes, system folders, conflict copies, and the names that a new note may have.

Pure: decides from names alone, so that every machine decides alike.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection, Iterable

from notebook_sync.model import CORE_FACTS, RUNTIME_FILES

LONGEST_NAME = 255
_LONGEST_PATH = 4000


def is_hidden(name: str) -> bool:
    """Dot files and folders: `.git`, `.notebook`, `.obsidian`, `.trash`, `.stversions`, editors' temporary files."""
    return name.startswith(".")


def is_note_name(name: str) -> bool:
    """`.md` in any case decides; backups and temporary files (`x.md~`, `4913`, `x.md.tmp`, `#x.md#`) end otherwise."""
    return name[-3:].lower() == ".md" and name[0] != "."  # not `is_hidden`: every file is asked


def is_system_folder(name: str) -> bool:
    """Hidden folders, and those in which file servers and systems keep deleted files, old versions and thumbnails."""
    return is_hidden(name) or name.casefold() in SYSTEM_FOLDERS


SYSTEM_FOLDERS = frozenset(
    {
        *("@eadir", "@tmp", "@recycle", "@recently-snapshot", "@sharebin", "@snapshot"),
        *("#recycle", "#snapshot", "$recycle.bin", "recycler", "system volume information", "lost+found", "__macosx"),
    }
)


def copy_of(path: str, guarded: Collection[str] = (*RUNTIME_FILES, CORE_FACTS)) -> str:
    """The path of the note that `path` is a conflict copy or a backup of, by the known forms of names; "" for none.

    A number, "copy" or a computer's name behind the name (`core 2.md`, `core (1).md`, `core - Copy.md`,
    `core-ODILE-PC.md`) is also what people call their own notes; it makes a copy only of a `guarded` path, where a copy
    that is not known as one would give away what its original hides, or add rules and facts.
    """
    folder, slash, name = path.rpartition("/")
    stem, ending = name[:-3], name[-3:]
    if not is_note_name(name):
        return ""
    original = _COPY.sub("", stem)
    plain = _MAYBE_COPY.sub("", original)
    if f"{folder}{slash}{plain}{ending}".casefold() in {each.casefold() for each in guarded}:
        original = plain
    return f"{folder}{slash}{original}{ending}" if original and original != stem else ""


def why_not(path: str) -> str:
    """Why no new note may have this relative path; "" where nothing in its names is against it."""
    parts = path.split("/")
    if not _NO_NAMES.isdisjoint(parts):
        return "is no plain path; name the note by its path in the notebook"
    if any(unicodedata.category(each) in _UNPRINTABLE or each in _BIDI for each in path):
        return "has a control character, or bytes that are not UTF-8"
    if "\\" in path:
        return "has a backslash; write / between folders"
    if len(path.encode()) > _LONGEST_PATH or max(len(part.encode()) for part in parts) > LONGEST_NAME:
        return f"is longer than {_LONGEST_PATH} bytes, or a name in it longer than {LONGEST_NAME}"
    for part in parts:
        if is_system_folder(part):
            return f"leads through {part!r}, which is hidden or the system's own"
        if part.strip(" ") != part or part.endswith("."):
            return f"has a space or a dot at the edge of {part!r}, which other systems drop"
        if part.split(".")[0].rstrip().casefold() in _DEVICES:
            return f"has {part!r}, the name of a device on Windows"
    return "" if is_note_name(parts[-1]) else "is not a note's name; end it in .md"


def twin(name: str, others: Iterable[str]) -> str:
    """Another name in the folder that some systems take for `name` (other case, other Unicode form); "" for none."""
    wanted = folded(name)
    return next((other for other in others if other != name and folded(other) == wanted), "")


def folded(name: str) -> str:
    """What two names have in common that some system takes for one."""
    # Folding can undo the composition.
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", name).casefold())


_NO_NAMES = frozenset({"", ".", ".."})
# Control characters, surrogates (bytes that are not UTF-8), line and paragraph separators.
_UNPRINTABLE = frozenset({"Cc", "Cs", "Zl", "Zp"})
# What shows text in another order than it is written in.
_BIDI = frozenset("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")
_DEVICES = frozenset(
    {"con", "prn", "aux", "nul", *(f"{port}{digit}" for port in ("com", "lpt") for digit in "123456789¹²³")}
)
_COPY = re.compile(
    r"""(?: \.sync-conflict-\d{8}-\d{6}(?:-\w+)?                        # Syncthing
          | [_.]conflict-\d{8}-\d{6}                                    # ownCloud, older Nextcloud
          | \.conflict\d*                                               # Resilio Sync
          | [ ]\([^()]*(?:conflicted[ ]copy|konfliktkopie)[^()]*\)      # Dropbox, Nextcloud, Obsidian Sync
          | [ ]\((?=[^()]*\d{4}-\d\d-\d\d)[^()]*(?:[ck]onfli[ckt]?t|競合|冲突|衝突)[^()]*\)  # Seafile, other languages
          | [ ]\((?:case|selective[ ]sync|unicode[ ]encoding)[ ]conflict(?:[ ]\d+)?\)        # Dropbox
          | [ ]\[conflict[^\]]*\]                                       # Google Drive
          | (?-i:-(?:DESKTOP|LAPTOP)-(?=[A-Z]*\d)[0-9A-Z]{6,9}(?:-\d+)?)  # OneDrive: names that Windows gives
          | _(?-i:BACKUP|BASE|LOCAL|REMOTE)_\d+                         # git mergetool
          | \.(?:bak|backup|orig)\d*
          | ~
        )+$""",
    re.VERBOSE | re.IGNORECASE,
)
_MAYBE_COPY = re.compile(
    r"""(?: [ ]?\(\d+\) | [ ]\d+
          | [ ](?:-[ ])?(?:copy|kopie|copie|copia)(?:[ ]\(?\d+\)?)?
          | [ ._-](?:old|backup|bak|orig)
          | (?-i:-[A-Z][A-Z0-9]*(?:-[A-Z0-9]+)*)
        )$""",
    re.VERBOSE | re.IGNORECASE,
)
