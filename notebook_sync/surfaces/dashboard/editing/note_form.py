"""The frontmatter of a note as the fields of a form, and what of it a form that was sent changes. Pure.

A field that was left as it was shown is left as it is written: nothing is made anew from what was read.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

from notebook_sync.errors import UsageError
from notebook_sync.files.edit_shape import characters_refused
from notebook_sync.files.fields import LISTS, SPECIAL, plain_tags
from notebook_sync.files.frontmatter import Metadata, read_frontmatter
from notebook_sync.files.new_note import as_yaml
from notebook_sync.files.note import STATUSES, collection_of
from notebook_sync.mirror.memories import KINDS
from notebook_sync.notes.page_text import checked_title

Form = Mapping[str, str]
Shape = Literal["line", "tags", "lines", "choice", "number"]
_LABELS: Mapping[str, tuple[str, str]] = {
    "title": ("Title", "The first heading, where this is empty"),
    "tags": ("Tags", "Separated by commas"),
    "status": ("Status", "draft, where none is chosen"),
    "summary": ("Summary", "The first paragraph, where this is empty"),
    "language": ("Language", "Of the code"),
    "related_page": ("Related page", ""),
    "source_url": ("Source", "Its address"),
    "confidence": ("Confidence", "From 0 to 1"),
    "key_findings": ("Key findings", "One a line"),
    "related_pages": ("Related pages", "One a line"),
    "kind": ("Kind", ""),
    "domain": ("Domain", ""),
    "priority": ("Priority", "From 1 to 10"),
}
_COMMON = ("title", "tags", "status", "summary")
_CHOICES: Mapping[str, tuple[str, ...]] = {"status": STATUSES, "kind": KINDS}
_NUMBERS = ("confidence", "priority")


@dataclass(frozen=True, slots=True)
class Field:
    """One input. `value` is what it shows; `choices` has what may be chosen, and what stands there."""

    name: str
    label: str
    hint: str
    shape: Shape
    value: str
    choices: tuple[str, ...] = ()

    def with_value(self, value: str) -> Field:
        """The same, with what was typed."""
        choices = self.choices if value in self.choices or not self.choices else (*self.choices, value)
        return replace(self, value=value, choices=choices)


def fields_of(file: str, path: str) -> tuple[Field, ...]:
    """The inputs for a note; none where its frontmatter cannot be read, and for what the prompt shows without it."""
    front = read_frontmatter(file)
    collection = collection_of(path)
    if front.problem is not None or collection == "runtime":
        return ()
    return tuple(_fields(front.metadata, collection))


def empty_fields(collection: str) -> tuple[Field, ...]:
    """The inputs for a note that is not there yet."""
    return tuple(
        replace(field, hint="") if field.name == "title" else field for field in _fields(Metadata(), collection)
    )


def others_of(file: str, path: str) -> tuple[str, ...]:
    """The names of what else stands in the frontmatter, and stays as it is."""
    named = {field.name for field in fields_of(file, path)}
    return tuple(name for name in read_frontmatter(file).metadata if name not in named)


def _fields(metadata: Metadata, collection: str) -> Iterator[Field]:
    for name in (*_COMMON, *(name for name in SPECIAL.get(collection, ()) if name in _LABELS)):
        value = _shown(metadata, name)
        if value is not None:
            label, hint = _LABELS[name]
            choices = _CHOICES.get(name, ())
            stands = (value,) if value and choices and value not in choices else ()
            yield Field(name, label, hint, _shape(name), value, ("", *choices, *stands) if choices else ())


def _shape(name: str) -> Shape:
    if name == "tags":
        return "tags"
    if name in LISTS:
        return "lines"
    if name in _NUMBERS:
        return "number"
    return "choice" if name in _CHOICES else "line"


def _shown(metadata: Metadata, name: str) -> str | None:
    """What the input shows; None for what none can."""
    if name not in metadata or metadata[name] is None:
        return ""
    texts = metadata.texts(name)
    if texts is not None:
        if name == "tags":
            return ", ".join(_on_a_line(text) for text in texts)
        return "\n".join(_on_a_line(text) for text in texts) if name in LISTS else None
    text = metadata.text(name)
    return None if text is None else _on_a_line(text)


def _on_a_line(text: str) -> str:
    return " ".join(text.split())


def changes_in(form: Form, fields: tuple[Field, ...]) -> str:
    """What a form changes, as YAML for `set_frontmatter`; "" for nothing. Raises UsageError for what cannot be said."""
    return as_yaml(values_in(form, fields))


def values_in(form: Form, fields: tuple[Field, ...]) -> dict[str, Any]:
    """By name, what is to be written instead of what there is; None for what is to go. Raises UsageError."""
    return {
        field.name: _written(field, form[field.name])
        for field in fields
        if field.name in form and form[field.name].strip() != field.value.strip()
    }


def _written(field: Field, text: str) -> Any:
    if refused := characters_refused(text):
        raise UsageError(f"the {field.label.lower()} cannot be written: {refused}")
    if not text.strip():
        return None
    match field.shape:
        case "tags":
            return list(plain_tags(text.split(",")))
        case "lines":
            return [line.strip() for line in text.split("\n") if line.strip()]
        case "number":
            return _number(field, text.strip())
        case "choice" if text not in field.choices:
            raise UsageError(f"there is no {field.label.lower()} {text!r}; choose one of those that are offered")
    return checked_title(text) if field.name == "title" else _on_a_line(text)


def _number(field: Field, text: str) -> float | int:
    try:
        if field.name == "priority" and 1 <= int(text) <= 10:
            return int(text)
        if field.name == "confidence" and 0 <= float(text) <= 1:
            return float(text)
    except ValueError:
        pass
    raise UsageError(f"the {field.label.lower()} is a number {field.hint[0].lower()}{field.hint[1:]}")
