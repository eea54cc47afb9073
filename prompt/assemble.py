"""Files, a session and settings in; one system prompt out, exact to the token. Never reads a file, a clock or chance.

sources ─▶ what the session may see ─▶ each file within its cap ─▶ over the total? shares ─▶ stable part ─▶ + volatile

The stable part is made before the volatile one is looked at, and depends on nothing in it.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable, Sequence
from dataclasses import replace
from datetime import date
from hashlib import sha256
from typing import Generic, TypeVar

from prompt.counts import CountCache, Counter
from prompt.page import Pager
from prompt.parts import View, cutting_of, part_of, view_of
from prompt.trim import Cutting, Trimmed
from prompt.values import Part, Prompt, PromptFile, PromptSettings, Session, Source, Volatile
from prompt.volatile import fitted

T = TypeVar("T")

NOTHING_VOLATILE = Volatile()


def assemble(
    sources: Sequence[Source],
    session: Session,
    settings: PromptSettings,
    *,
    today: date,
    volatile: Volatile = NOTHING_VOLATILE,
    counts: CountCache | None = None,
) -> Prompt:
    """The system prompt that `session` gets. `today` is the day in the notebook's timezone, for `[until DATE]`.

    A configured file that no source brings is missing. What there is no room for is told in the prompt's `problems`.
    Raises VocabularyMissing, and nothing else for any text.
    """
    return Assembler(settings, counts).assemble(sources, session, today=today, volatile=volatile)


class Assembler:
    """Assembles prompts and remembers what did not change, by digest. May be used from several threads."""

    def __init__(self, settings: PromptSettings, counts: CountCache | None = None) -> None:
        self.settings = settings
        self.count = Counter(settings.encoding, counts)
        self._files = settings.shown_files
        self._prompts: _Recent[Prompt] = _Recent(32)
        self._stable: _Recent[Prompt] = _Recent(32)
        self._views: _Recent[View] = _Recent(64)
        # Fewer, for each holds a tree that may be ten times its text.
        self._cuttings: _Recent[Cutting] = _Recent(16)
        self._parts: _Recent[Part] = _Recent(128)

    def assemble(
        self, sources: Sequence[Source], session: Session, *, today: date, volatile: Volatile = NOTHING_VOLATILE
    ) -> Prompt:
        """As the function `assemble`; with nothing changed, the same object as the last time."""
        digests = {source.path: _digest(source.content) for source in sources}
        known = tuple((source.path, digests[source.path], source.problem, source.external) for source in sources)
        key = (known, session, today)

        def stable() -> Prompt:
            return self._stable.get(key, lambda: self._stable_prompt(sources, digests, session, today))

        return self._prompts.get((key, volatile), lambda: self._with(volatile, stable()))

    def _with(self, volatile: Volatile, prompt: Prompt) -> Prompt:
        limit = self.settings.max_tokens
        more = fitted(volatile, prompt.stable, limit, self.count)
        if not more.text and not more.left_out:
            return prompt
        text = prompt.stable + more.text
        left_out = (f'prompt.max_tokens = {limit} leaves no room for "{heading}"' for heading in more.left_out)
        return replace(prompt, text=text, tokens=self.count(text), problems=(*prompt.problems, *left_out))

    def _stable_prompt(
        self, sources: Sequence[Source], digests: dict[str, str], session: Session, today: date
    ) -> Prompt:
        by_path = {source.path: source for source in sources}
        files = [file for file in self._files if not file.optional or file.path in by_path]
        seen = [file for file in files if session in file.sessions]
        keys = [_view_key(by_path.get(file.path), file, digests, session, today) for file in seen]
        views = [
            self._view(key, file, by_path.get(file.path), session, today) for key, file in zip(keys, seen, strict=True)
        ]

        def part(index: int, cap: int) -> Part:
            def cut_to(cap: int) -> Trimmed:
                return self._cuttings.get(keys[index], lambda: cutting_of(views[index], self.count)).at(cap)

            return self._parts.get((keys[index], cap), lambda: part_of(views[index], cap, cut_to))

        page = Pager(self.settings, session, seen, views, part, self.count).page()
        return Prompt(
            text=page.text,
            stable=page.text,
            tokens=page.tokens,
            revision=sha256(page.text.encode("utf-8", "surrogatepass")).hexdigest(),
            session=session,
            parts=page.parts,
            filtered=tuple(file.path for file in files if session not in file.sessions),
            problems=(*(f"{part.path}: {part.problem}" for part in page.parts if part.problem), *page.problems),
            encoding=self.settings.encoding,
        )

    def _view(self, key: Hashable, file: PromptFile, source: Source | None, session: Session, today: date) -> View:
        return self._views.get(key, lambda: view_of(file, source, session, today, self.count))


def _view_key(
    source: Source | None, file: PromptFile, digests: dict[str, str], session: Session, today: date
) -> Hashable:
    """All that a view depends on. The day decides nothing where no rule ends."""
    if source is None or source.content is None:
        return file.path, file.heading
    day = today if b"[until" in source.content.lower() else None
    return file.path, file.heading, digests[file.path], session == "owner", day, source.problem, source.external


def _digest(content: bytes | None) -> str:
    return "" if content is None else sha256(content).hexdigest()


class _Recent(Generic[T]):
    """The values made last, at most `limit`."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._values: OrderedDict[Hashable, T] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, key: Hashable, make: Callable[[], T]) -> T:
        with self._lock:
            if key in self._values:
                self._values.move_to_end(key)
                return self._values[key]
        value = make()
        with self._lock:
            self._values[key] = value
            while len(self._values) > self._limit:
                self._values.popitem(last=False)
        return value
