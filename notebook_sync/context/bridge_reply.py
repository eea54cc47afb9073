"""What a bridge is asked with, and its reply, read: an answer, or why it is none. Pure.

Success is told inside of a reply. What it says of a failure is only recognised: none of its words go further.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

WHERE = "below [tier2] in notebook.toml"
LIMIT = "its own limit, for a day or for a time, is reached; ask again later"
LOGIN = "it is not logged in to its service; log in to it in the way that its documentation describes"
UNKNOWN_NOTEBOOK = f"it does not know the notebook to ask about; look at notebook_id {WHERE}"
LATE = "its service did not answer it in time; ask again later"
FAILED = "it says that it failed; ask again later, or try it in a program that shows what it says"
BROKEN = f"its reply is not what ask_question replies; check command {WHERE}"
EMPTY = "its answer is empty; ask again later"

# The first of these that a complaint speaks of; services complain in the language of their user.
_ABOUT = tuple(
    (trouble, re.compile("|".join(words), re.IGNORECASE))
    for trouble, words in (
        (
            LIMIT,
            (
                r"(?:rate|daily|query|request|usage|raten).?limit",
                r"limit (?:(?:is|was|has been) )?(?:reached|exceeded)",
                r"quota",
                r"too many requests",
            ),
        ),
        (LOGIN, (r"authenticat", r"not logged", r"\blog.?in\b", r"\bsign.?in\b", r"credential", r"cookies?\b")),
        (UNKNOWN_NOTEBOOK, (r"notebook not found", r"no (?:active )?notebook", r"unknown notebook")),
        (LATE, (r"time(?:d)?.?out",)),
    )
)
_LONGEST_COMPLAINT = 600
_BAD_STATUS = re.compile(r"error|fail|limit|timeout|denied|refus", re.IGNORECASE)
_HEADING = re.compile(r"^ {0,3}#{1,6} ", re.MULTILINE)
_MARKER = re.compile(r"\A\s*\[AI-GENERATED[^\]\n]*\]\s*")
_NAG = re.compile(r"(?:extremely important:\s*)?\bis that all you need to know\?", re.IGNORECASE)
_LONGEST_NAG = 800


@dataclass(frozen=True, slots=True)
class Reply:
    """One of the two is ""."""

    answer: str = ""
    trouble: str = ""


def arguments(schema: Mapping[str, Any], question: str, notebook: str, seconds: float) -> dict[str, Any] | None:
    """What a tool whose arguments have this JSON schema is asked with; None where it cannot be told which notebook.

    A bridge that types a question into a page is told to put it there at once, if that can be told: typed as a person
    types, a long one takes longer than anybody waits for its answer. And for how long to wait for that.
    """
    asked: dict[str, Any] = {"question": question}
    if notebook:
        name = "notebook_url" if notebook.startswith(("https://", "http://")) else "notebook_id"
        if _declared(schema, name) is None:
            return None
        asked[name] = notebook
    options: dict[str, Any] = {}
    if _declared(schema, "browser_options", "answer_timeout_ms") is not None:
        options["answer_timeout_ms"] = int(seconds * 1000)
    if _declared(schema, "browser_options", "stealth", "human_typing") is not None:
        options["stealth"] = {"human_typing": False}
    return {**asked, "browser_options": options} if options else asked


def read_reply(texts: Sequence[str], *, is_error: bool = False) -> Reply:
    """A reply's texts: the first is an object with `success` and `data`, which has the `answer`; or, of simpler
    bridges, they are the answer. is_error: they are told to be those of an error."""
    first = texts[0] if texts else ""
    if is_error or not first.lstrip().startswith("{"):
        whole = "\n\n".join(texts)
        return Reply(trouble=_trouble_of(whole)) if is_error else _answered(whole)
    try:
        told = json.loads(first)
    except (ValueError, RecursionError):
        return Reply(trouble=BROKEN)
    if told.get("success", True) is not True:
        return Reply(trouble=_trouble_of(told.get("error")))
    said = told.get("data", told)
    return _said(said) if isinstance(said, Mapping) else Reply(trouble=BROKEN)


def _declared(schema: Mapping[str, Any], *names: str) -> Mapping[str, Any] | None:
    """The schema of the property at the end of these; None where one of them is not declared."""
    found = schema
    for name in names:
        properties = found.get("properties")
        inner = properties.get(name) if isinstance(properties, Mapping) else None
        if not isinstance(inner, Mapping):
            return None
        found = inner
    return found


def _said(said: Mapping[str, Any]) -> Reply:
    status, error, answer = said.get("status"), said.get("error"), said.get("answer")
    if error or (isinstance(status, str) and _BAD_STATUS.search(status)):
        return Reply(trouble=_trouble_of(error or status))
    return _answered(answer) if isinstance(answer, str) else Reply(trouble=BROKEN)


def _answered(text: str) -> Reply:
    """An answer without what is added to each. A short one that speaks of a limit is none: a service may put that where
    its answers stand."""
    answer = _without_nag(_MARKER.sub("", text, count=1)).strip()
    if not answer:
        return Reply(trouble=EMPTY)
    is_short = len(answer) <= _LONGEST_COMPLAINT and not _HEADING.search(answer)
    return Reply(trouble=LIMIT) if is_short and _trouble_of(answer) == LIMIT else Reply(answer)


def _without_nag(text: str) -> str:
    """Without the wish for another question, which stands last; the same words before a heading are the answer's."""
    for found in _NAG.finditer(text, max(0, len(text) - _LONGEST_NAG)):
        if not _HEADING.search(text, found.end()):
            return text[: found.start()]
    return text


def _trouble_of(said: object) -> str:
    words = said[:_LONGEST_COMPLAINT] if isinstance(said, str) else ""
    return next((trouble for trouble, about in _ABOUT if about.search(words)), FAILED)
