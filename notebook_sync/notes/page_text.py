"""The bytes of a note that an agent makes or changes by its fields. Pure.

What is written reads back as what was asked for, and of a note that stands, only the fields that are asked for change.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from notebook_sync.errors import EditFailed, UsageError
from notebook_sync.files.edit_shape import characters_refused
from notebook_sync.files.edits import Edit, edited
from notebook_sync.files.fields import LISTS, SPECIAL, Fields, plain_tags, read_fields
from notebook_sync.files.frontmatter import Frontmatter, read_frontmatter
from notebook_sync.files.names import TURNING
from notebook_sync.files.new_note import as_yaml, note_text
from notebook_sync.files.note import STATUSES, collection_of
from notebook_sync.files.parse import first_fence, parse
from notebook_sync.permissions import is_ignorable
from prompt.outline import Outline

CONTENT = "content"
SNIPPETS = "code_snippets"
_DRAFT = "draft"
_PARAGRAPHS = "description"


@dataclass(frozen=True, slots=True)
class Wanted:
    """What is asked of a note. None leaves a thing as it is; "" and an empty list take it away where that is possible.

    `fields` are those that only its collection has.
    """

    content: str | None = None
    title: str | None = None
    summary: str | None = None
    tags: Sequence[str] | None = None
    status: str | None = None
    fields: Mapping[str, Any] | None = None


def new_page(collection: str, wanted: Wanted, *, note_id: str, created_by: str, created_at: datetime) -> bytes:
    """A note that is not there yet. Raises UsageError for what it cannot say."""
    values = _values(collection, wanted)
    if not values.get("title"):
        raise UsageError("a note needs a title; give it a few words")
    head = {
        "id": note_id,
        "title": values.pop("title"),
        "created_by": created_by,
        "created_at": created_at,
        "status": values.pop("status", _DRAFT),
        **{name: value for name, value in values.items() if _says(value)},
    }
    body = _body(collection, wanted.content or "", head.get("language"))
    text = note_text(head, body)
    _must_read_back(read_frontmatter(text), collection, head)
    return text.encode()


def updated_page(path: str, raw: bytes, wanted: Wanted) -> tuple[bytes, tuple[str, ...]]:
    """The note at `path` as it is to be, and the names of what changed. Raises UsageError for what it cannot say, and
    EditFailed where its frontmatter cannot be read."""
    collection = collection_of(path)
    values = _values(collection, wanted)
    text, front = _read(path, raw)
    fields = read_fields(front.metadata, collection)
    changing = {name: value for name, value in values.items() if _is_news(name, value, fields, front)}
    if wanted.content is not None:
        body = _body(collection, wanted.content, values.get("language", fields.special.get("language")))
        text = _with_content(front, body)
    setting = dict(changing)
    if "title" in changing and "title" not in front.metadata:
        del setting["title"]
        if parse(path, text.encode()).title == changing["title"]:
            del changing["title"]
        elif wanted.content is None and (retitled := _retitled(front.content, changing["title"])) is not None:
            text = _with_content(front, retitled)
        else:
            setting["title"] = changing["title"]
    if setting:
        text = _with_fields(path, text, collection, setting)
    is_new_text = wanted.content is not None and read_frontmatter(text).content != front.content
    return text.encode(), (*changing, *([CONTENT] if is_new_text else []))


def _with_fields(path: str, text: str, collection: str, setting: Mapping[str, Any]) -> str:
    fields = {name: value if _says(value) else None for name, value in setting.items()}
    after = edited(text.encode(), Edit("set_frontmatter", content=as_yaml(fields)), path).decode()
    _must_read_back(read_frontmatter(after), collection, fields)
    return after


# What is asked for, as the reader gives it back.


def _values(collection: str, wanted: Wanted) -> dict[str, Any]:
    """By name, what is asked for, as reading gives it back."""
    values: dict[str, Any] = {}
    if wanted.title is not None:
        values["title"] = checked_title(wanted.title)
    if wanted.status is not None:
        if wanted.status not in STATUSES:
            raise UsageError(f"there is no status {wanted.status!r}; use one of {', '.join(STATUSES)}")
        values["status"] = wanted.status
    if wanted.tags is not None:
        values["tags"] = list(plain_tags(_texts("tags", wanted.tags, parted=True)))
    if wanted.summary is not None:
        values["summary"] = _line("summary", wanted.summary)
    for name, value in (wanted.fields or {}).items():
        values[name] = _special(collection, name, value)
    if wanted.content is not None:
        _must_be_text(CONTENT, wanted.content)
    return values


def _special(collection: str, name: str, value: Any) -> Any:
    known = SPECIAL.get(collection, {})
    if name not in known:
        told = f"its own are {', '.join(known)}" if known else "it has none of its own"
        raise UsageError(f"{collection} has no field {name!r} to be set; {told}")
    if value is None:
        return ""
    if name in LISTS:
        return [text.strip() for text in _texts(name, value) if text.strip()]
    if name == "confidence":
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1:
            raise UsageError("confidence must be a number from 0 to 1")
        return float(value)
    if name == _PARAGRAPHS:
        _must_be_text(name, value)
        return str(value).replace("\r\n", "\n").strip()
    return _line(name, value)


def _line(name: str, value: Any) -> str:
    _must_be_text(name, value)
    return " ".join(str(value).split())


def checked_title(value: Any) -> str:
    """A title on one line. Raises UsageError for what nobody could read."""
    title = _line("title", value)
    if all(is_ignorable(each) or each.isspace() for each in title):
        raise UsageError("a title needs at least one word that can be seen")
    if turning := next((each for each in title if each in TURNING), ""):
        raise UsageError(f"the title cannot be written: U+{ord(turning):04X} in it turns the text around; leave it out")
    return title


def _texts(name: str, value: Any, *, parted: bool = False) -> Iterable[str]:
    if isinstance(value, str):
        value = value.split(",") if parted else [value]
    if not isinstance(value, Sequence):
        raise UsageError(f"{name} must be a list of texts")
    for text in value:
        _must_be_text(name, text)
    return value


def _must_be_text(name: str, value: Any) -> None:
    if not isinstance(value, str):
        raise UsageError(f"{name} must be text")
    if refused := characters_refused(value):
        raise UsageError(f"the {name} cannot be written: {refused}")


def _says(value: Any) -> bool:
    return value is not None and value != "" and value != []


def _is_news(name: str, value: Any, fields: Fields, front: Frontmatter) -> bool:
    """Whether the frontmatter does not say this already. A field that is wrong there says nothing."""
    if name not in front.metadata:
        return _says(value) and not (name == "status" and value == _DRAFT)
    said = _said(name, fields)
    return (value if _says(value) else None) != (said if _says(said) else None)


def _said(name: str, fields: Fields) -> Any:
    if name == "tags":
        return list(fields.tags)
    return getattr(fields, name) if name in _COMMON else fields.special.get(name)


_COMMON = frozenset(("title", "summary", "status"))


def _must_read_back(front: Frontmatter, collection: str, values: Mapping[str, Any]) -> None:
    fields = read_fields(front.metadata, collection)
    known = _COMMON | {"tags"} | SPECIAL.get(collection, {}).keys()
    for name, value in values.items():
        if value is not None and name in known and _said(name, fields) != value:
            raise UsageError(f"the {name} cannot be written so that it reads back as it is; give it in plain words")


# The text below the frontmatter.


def _read(path: str, raw: bytes) -> tuple[str, Frontmatter]:
    try:
        text = raw.decode()
    except UnicodeDecodeError as error:
        reason = f"it is not UTF-8 at byte {error.start:,}; mend that first, or write the whole file"
        raise EditFailed(path, reason) from None
    front = read_frontmatter(text)
    if front.problem is not None:
        raise EditFailed(path, "the frontmatter must be mended first:", (str(front.problem),))
    return text, front


def _with_content(front: Frontmatter, content: str) -> str:
    """The note with another text. One that would itself read as frontmatter gets an empty one above it."""
    text = front.head + content
    read = read_frontmatter(text)
    if read.problem is None and read.head == front.head:
        return text
    return f"{front.head}---\n---\n{content}"


def _body(collection: str, content: str, language: Any) -> str:
    """What agents give as a snippet is code, unless there is a fence in it."""
    if collection != SNIPPETS or first_fence(Outline(content)):
        return content
    eol = "\r\n" if "\r\n" in content else "\n"
    info = str(language or "")
    mark = "~" if "`" in info else "`"
    longest = max((len(run) for run in re.findall(f"^ *({mark}+)", content, re.MULTILINE)), default=0)
    fence = mark * max(3, longest + 1)
    last = "" if not content or content.endswith("\n") else eol
    return f"{fence}{info}{eol}{content}{last}{fence}{eol}"


_ATX = re.compile(r"( {0,3}#[ \t]+)[^\r\n]*")


def _retitled(content: str, title: str) -> str | None:
    """The text with another title in the heading that gave the old one; None where there is none, or where it would
    not read as that title."""
    sections = Outline(content).sections
    number = next((at for at, section in enumerate(sections) if section.level == 1 and section.title), None)
    if number is None:
        return None
    old = sections[number]
    lines = content[old.start : old.body].splitlines(keepends=True)
    atx = _ATX.match(lines[0])
    end = lines[0][len(lines[0].rstrip("\r\n")) :]
    new = f"{atx[1]}{title}{end}" if atx else f"{title}{end}{lines[-1]}"
    after = content[: old.start] + new + content[old.body :]
    meant = [(section.level, title if at == number else section.title) for at, section in enumerate(sections)]
    return after if [(section.level, section.title) for section in Outline(after).sections] == meant else None
