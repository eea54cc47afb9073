"""Files, a session and settings in; one system prompt out, exact to the token. Never reads a file, a clock or chance.

sources ─▶ what a model may see ─▶ each file within its cap ─▶ over the total? shares ─▶ stable part ─▶ + volatile

The stable part is made before the volatile one is looked at, and depends on nothing in it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import date, datetime, time
from functools import lru_cache, partial
from hashlib import sha256

from prompt.budget import Count
from prompt.counts import CountCache, Counter
from prompt.page import Pager
from prompt.parts import View, cutting_of, part_of, view_of
from prompt.values import FileText, Part, Prompt, PromptFile, PromptSettings, Session, Volatile
from prompt.volatile import fitted

_DATED = re.compile(rb"[\[(]\s*(?:until|from)\b[^\])]{0,80}", re.IGNORECASE)
_CLOCK = re.compile(rb"\d:\d")
_ALWAYS = datetime.combine(date.min, time())
NOTHING_VOLATILE = Volatile()


def assemble(
    sources: Sequence[FileText],
    session: Session,
    settings: PromptSettings,
    *,
    now: datetime,
    volatile: Volatile = NOTHING_VOLATILE,
    counts: CountCache | None = None,
) -> Prompt:
    """The system prompt that `session` gets. `now` is local to the notebook, for `[until DATE]`.

    A configured file that is not in `sources` is missing. What there is no room for is reported in the prompt's
    `problems`. Raises VocabularyMissing, and nothing else for any text.
    """
    return Assembler(settings, counts).assemble(sources, session, now=now, volatile=volatile)


class Assembler:
    """Assembles prompts and remembers what did not change. May be used from several threads."""

    def __init__(self, settings: PromptSettings, counts: CountCache | None = None) -> None:
        self.settings = settings
        self.count = Counter(settings.encoding, counts)
        # No cache refers to the assembler: one that is dropped is freed at once, and its trees with it.
        view = lru_cache(64)(partial(view_of, count=self.count))
        # Fewer, for each holds a tree that may be ten times its text.
        cutting = lru_cache(16)(partial(cutting_of, count=self.count))
        part = lru_cache(128)(partial(part_of, cutting=cutting))
        stable = lru_cache(16)(partial(_stable_prompt, settings, self.count, view, part))
        self._prompt = lru_cache(16)(partial(_prompt, settings.max_tokens, self.count, stable))

    def assemble(
        self, sources: Sequence[FileText], session: Session, *, now: datetime, volatile: Volatile = NOTHING_VOLATILE
    ) -> Prompt:
        """As the function `assemble`; with nothing changed, the same object as the last time."""
        moment = max((_moment(source.content or b"", now) for source in sources), default=_ALWAYS)
        return self._prompt(tuple(sources), session, moment, volatile)


def _prompt(
    limit: int,
    count: Count,
    stable: Callable[[tuple[FileText, ...], Session, datetime], Prompt],
    sources: tuple[FileText, ...],
    session: Session,
    now: datetime,
    volatile: Volatile,
) -> Prompt:
    """The stable prompt and the volatile texts."""
    prompt = stable(sources, session, now)
    more, left_out = fitted(volatile, prompt.stable, limit, count)
    if not more and not left_out:
        return prompt
    text = prompt.stable + more
    problems = (f'prompt.max_tokens = {limit} leaves no room for "{heading}"' for heading in left_out)
    return replace(prompt, text=text, tokens=count(text), problems=(*prompt.problems, *problems))


def _stable_prompt(
    settings: PromptSettings,
    count: Count,
    view: Callable[[PromptFile, FileText, datetime], View],
    part: Callable[[View, int], Part],
    sources: tuple[FileText, ...],
    session: Session,
    now: datetime,
) -> Prompt:
    by_path = {source.path: source for source in sources}
    files = [file for file in settings.shown_files if not file.optional or file.path in by_path]
    seen = [file for file in files if session in file.sessions]
    views = []
    for file in seen:
        source = by_path.get(file.path, FileText(file.path, None))
        views.append(view(file, source, _moment(source.content or b"", now)))
    page = Pager(settings, session, seen, views, part, count).page()
    return Prompt(
        text=page.text,
        stable=page.text,
        tokens=page.tokens,
        revision=sha256(page.text.encode("utf-8", "surrogatepass")).hexdigest(),
        session=session,
        parts=page.parts,
        filtered=tuple(file.path for file in files if session not in file.sessions),
        problems=(*(f"{part.path}: {part.problem}" for part in page.parts if part.problem), *page.problems),
        encoding=settings.encoding,
    )


def _moment(content: bytes, now: datetime) -> datetime:
    """`now` as exactly as a file depends on it: not at all where no rule ends, by the minute where one names a time."""
    depends, by_minute = _dependence(content)
    midnight = datetime.combine(now, time())
    return _ALWAYS if not depends else now.replace(second=0, microsecond=0) if by_minute else midnight


@lru_cache(256)
def _dependence(content: bytes) -> tuple[bool, bool]:
    dated = [match[0] for match in _DATED.finditer(content)]
    return bool(dated), any(_CLOCK.search(one) for one in dated)
