"""What file names mean: notes, system folders, conflict copies, who may read them, the names that a new note may have,
and which names the rules of `.gitignore` files and of `notebook.exclude` leave out.

Pure: decides from names alone, so that every machine decides alike. Rules are relative to the notebook, so that one
below `.venv` or `node_modules` is seen like any other.
"""

from __future__ import annotations

import re
import unicodedata
import warnings
from collections.abc import Collection, Iterable, Sequence
from functools import lru_cache

import msgspec

from notebook_sync.model import CORE_FACTS, RUNTIME_FILES
from notebook_sync.permissions import audience_of, guarded_paths, may
from notebook_sync.sessions import Session
from notebook_sync.settings import PromptTable

GITIGNORE = ".gitignore"
_LONGEST_NAME = 255
_LONGEST_PATH = 4000
_OTHERS = (Session.task(), Session.external())


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
    if plain != original and f"{folder}{slash}{plain}{ending}".casefold() in {each.casefold() for each in guarded}:
        original = plain
    return f"{folder}{slash}{original}{ending}" if original and original != stem else ""


def judged_paths(path: str, prompt: PromptTable) -> tuple[str, ...]:
    """The paths whose rights count for a note. A conflict copy or a backup is as private as its original."""
    original = copy_of(path, guarded_paths(prompt))
    return (path, original) if original else (path,)


def audience(path: str, prompt: PromptTable) -> str:
    """Who may read the note at `path`: see `audience_of`."""
    return next((found for each in judged_paths(path, prompt) if (found := audience_of(each, prompt))), "")


def is_announced(path: str, prompt: PromptTable) -> bool:
    """Whether stream and refs name the note at `path`: no private note, and none that some session is denied."""
    return all(may(session, "read", each, prompt) for each in judged_paths(path, prompt) for session in _OTHERS)


def why_not(path: str) -> str:
    """Why no new note may have this relative path; "" where nothing in its names is against it."""
    parts = path.split("/")
    if not NO_NAMES.isdisjoint(parts):
        return "is no plain path; name the note by its path in the notebook"
    if any(unicodedata.category(each) in UNPRINTABLE or each in _BIDI for each in path):
        return "has a control character, or bytes that are not UTF-8"
    if "\\" in path:
        return "has a backslash; write / between folders"
    if is_too_long(path):
        return f"is longer than {_LONGEST_PATH} bytes, or a name in it longer than {_LONGEST_NAME}"
    for part in parts:
        if is_system_folder(part):
            return f"leads through {part!r}, which is hidden or the system's own"
        if part.strip(" ") != part or part.endswith("."):
            return f"has a space or a dot at the edge of {part!r}, which other systems drop"
        if part.split(".")[0].rstrip().casefold() in _DEVICES:
            return f"has {part!r}, the name of a device on Windows"
    return "" if is_note_name(parts[-1]) else "is not a note's name; end it in .md"


def is_too_long(path: str) -> bool:
    """Whether systems refuse such a path or a name in it."""
    return len(path.encode()) > _LONGEST_PATH or max(len(part.encode()) for part in path.split("/")) > _LONGEST_NAME


def twin(name: str, others: Iterable[str]) -> str:
    """Another name in the folder that some systems take for `name` (other case, other Unicode form); "" for none."""
    wanted = folded(name)
    return next((other for other in others if other != name and folded(other) == wanted), "")


def folded(name: str) -> str:
    """What two names have in common that some system takes for one."""
    # Folding can undo the composition.
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", name).casefold())


NO_NAMES = frozenset({"", ".", ".."})
# Control characters, surrogates (bytes that are not UTF-8), line and paragraph separators.
UNPRINTABLE = frozenset({"Cc", "Cs", "Zl", "Zp"})
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


class Rules(msgspec.Struct, frozen=True):
    """The rules of the folder `base` ("" for the root). `broken` are lines that are no pattern and match nothing.

    `any_pattern` is all patterns in one, so that most names need one look.
    """

    base: str
    patterns: tuple[tuple[re.Pattern[str], bool], ...]
    any_pattern: re.Pattern[str]
    broken: tuple[str, ...]

    def verdict(self, path: str, *, is_dir: bool) -> bool | None:
        """True: left out; False: explicitly kept; None: no rule matches."""
        relative = path.removeprefix(f"{self.base}/") + ("/" if is_dir else "")
        if not self.any_pattern.search(relative):
            return None
        return next((leaves_out for pattern, leaves_out in reversed(self.patterns) if _names(pattern, relative)), None)


@lru_cache  # a look at many files asks for the same rules again and again
def read_rules(base: str, lines: tuple[str, ...]) -> tuple[Rules, ...]:
    """The rules in these lines, as git reads them, or nothing. Those that name only hidden files are dropped, since
    hidden files are no notes anyway."""
    compiled = {line: _compiled(line) for line in lines if line.strip() and not line.startswith(("#", ".", "/."))}
    patterns = tuple(pattern for pattern in compiled.values() if pattern)
    alternatives = (re.sub(r"\(\?P<\w+>", "(?:", each.pattern) for each, _ in patterns)
    any_pattern = re.compile("|".join(alternatives) or "(?!)")  # without one, nothing
    broken = tuple(line for line, pattern in compiled.items() if pattern is None)
    return (Rules(base, patterns, any_pattern, broken),) if compiled else ()


def is_ignored(rules: Sequence[Rules], path: str, *, is_dir: bool) -> bool:
    """Whether rules leave out `path`; `rules` are sorted from the root inwards, and the innermost that match decide.

    What is in a folder that is left out is left out too; that is the caller's to know.
    """
    verdicts = (each.verdict(path, is_dir=is_dir) for each in reversed(rules))
    return next((verdict for verdict in verdicts if verdict is not None), False)


# What git knows and pathspec does not.
_CLASSES = {
    "alnum": "a-zA-Z0-9",
    "alpha": "a-zA-Z",
    "blank": " \t",
    "digit": "0-9",
    "lower": "a-z",
    "space": " \t\r\n\v\f",
    "upper": "A-Z",
    "xdigit": "0-9a-fA-F",
}
# The group with which pathspec says where a folder's name ends.
_FOLDER = "ps_d"
_CLASS = re.compile(r"\[:(\w+):\]")


def _compiled(line: str) -> tuple[re.Pattern[str], bool] | None:
    """The pattern of a line and whether it leaves out what it matches; None for a broken line, which, as in git,
    matches nothing."""
    # Most notebooks have no rule, and starting pathspec takes longer than a small scan.
    from pathspec.patterns.gitignore.spec import GitIgnoreSpecPattern

    try:
        spelled = _CLASS.sub(lambda found: _CLASSES[found[1]], line)
        with warnings.catch_warnings():
            warnings.simplefilter("error", FutureWarning)  # a bracket that git and `re` read differently
            pattern = GitIgnoreSpecPattern(spelled)
    except (ValueError, KeyError, re.error, FutureWarning):
        return None
    return (pattern.regex, pattern.include) if pattern.regex and pattern.include is not None else None


def _names(pattern: re.Pattern[str], path: str) -> bool:
    """Whether a pattern is about `path` itself, which ends in `/` for a folder, not about a folder that it is in."""
    return any(
        (found.groupdict().get(_FOLDER) is not None) == (path[-1] == "/" and found.end() == len(path))
        for found in pattern.finditer(path)
    )
