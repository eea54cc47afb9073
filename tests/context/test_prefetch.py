"""Syntheses made ahead: which specs are asked about, when, and how often at the most."""

from __future__ import annotations

from typing import Any

import pytest

from notebook_sync.context.prefetch import Prefetch, Specs, Synthesize
from notebook_sync.errors import BackendDown, ConfigError, NoSuchNote, NotPermitted
from notebook_sync.notes.editing.filing import File
from notebook_sync.permissions import Verb
from notebook_sync.sessions import Session

OWNER = Session.owner()
NOTES = {f"specs/{name}.md": f"# {name.title()}" for name in ("pier", "ferry", "harbour", "crew", "mail")}
SPECS = [path for path in NOTES if "mail" not in path]


class Reasoner:
    """Stands where `synthesize` does: it knows the answers to some specs, and fails at others."""

    def __init__(self, *, cached: tuple[str, ...] = (), down: tuple[str, ...] = ()) -> None:
        self._cached = cached
        self._down = down
        self.asked: list[str] = []

    def __call__(self, task_spec: str, session: Session) -> dict[str, Any]:
        self.asked.append(task_spec)
        assert session == OWNER
        is_down = task_spec in self._down
        trouble = "The bridge does not answer: it has said nothing" if is_down else ""
        source = "local" if is_down else "bridge"
        return {"source": source, "cached": task_spec in self._cached, "trouble": trouble, "synthesis_md": "# …"}


def find(name: str, session: Session, verb: Verb) -> str:
    if name not in NOTES:
        raise NoSuchNote(f"no note has the id or path {name!r}")
    return name


def file(path: str, session: Session) -> File:
    return File(path, NOTES[path], "", NOTES[path], external="mail" in path)


def prefetch(reasoner: Synthesize, specs: list[str], session: Session = OWNER) -> list[dict[str, Any]]:
    return Prefetch(permitted, find, file, reasoner, lambda: 0, 50).prefetch(specs, session)


def permitted(session: Session) -> None:
    if session.kind == "external":
        raise NotPermitted("no syntheses here")


class TestPrefetch:
    def test_each_spec_is_asked_about_once(self) -> None:
        reasoner = Reasoner(cached=("# Ferry",))
        specs = ["specs/pier.md", "specs/ferry.md", "specs/pier.md"]
        assert prefetch(reasoner, specs) == [
            {"spec": "specs/pier.md", "source": "bridge", "cached": False, "trouble": ""},
            {"spec": "specs/ferry.md", "source": "bridge", "cached": True, "trouble": ""},
        ]
        assert reasoner.asked == ["# Pier", "# Ferry"]

    def test_a_spec_that_is_none_holds_up_no_other(self) -> None:
        nowhere, mail, pier = prefetch(Reasoner(), ["nowhere", "specs/mail.md", "specs/pier.md"])
        assert (nowhere["source"], nowhere["trouble"]) == ("", "no note has the id or path 'nowhere'")
        assert (mail["source"], mail["trouble"][:38]) == ("", "specs/mail.md: somebody else wrote it;")
        assert (pier["source"], pier["trouble"]) == ("bridge", "")

    def test_one_failure_holds_up_no_other_spec(self) -> None:
        rows = prefetch(Reasoner(down=("# Pier", "# Harbour")), SPECS)
        assert [(row["source"], bool(row["trouble"])) for row in rows] == [
            *(("local", True), ("bridge", False), ("local", True), ("bridge", False)),
        ]

    def test_a_reasoner_that_is_away_is_not_asked_for_ever(self) -> None:
        reasoner = Reasoner(down=tuple(NOTES.values()))
        rows = prefetch(reasoner, SPECS)
        assert len(reasoner.asked) == 2
        assert [row["source"] for row in rows] == ["local", "local", "", ""]
        said = "not asked about, after 2 failures: The bridge does not answer: it has said nothing"
        assert [row["trouble"] for row in rows[2:]] == [said, said]

    @pytest.mark.parametrize(("limit", "ahead"), [(50, 37), (4, 3), (3, 2), (1, 0), (0, 0)])
    def test_a_quarter_of_a_days_calls_is_left_to_people(self, limit: int, ahead: int) -> None:
        reasoner = Reasoner()
        before = max(ahead - 1, 0)
        made = Prefetch(permitted, find, file, reasoner, lambda: before + len(reasoner.asked), limit)
        rows = made.prefetch(SPECS, OWNER)
        assert len(reasoner.asked) == ahead - before
        assert [row["source"] for row in rows] == ["bridge"] * (ahead - before) + [""] * (len(SPECS) - ahead + before)
        assert f"of {limit} questions a day, {ahead} may be asked ahead" in rows[-1]["trouble"]

    def test_who_may_have_none_is_told_so_before_any_name_is_looked_up(self) -> None:
        with pytest.raises(NotPermitted, match="no syntheses here"):
            prefetch(Reasoner(), ["nowhere"], Session.external("odile"))

    @pytest.mark.parametrize("error", [ConfigError("command is no program"), BackendDown("MongoDB", "it hangs")])
    def test_what_would_fail_for_each_spec_fails_once(self, error: Exception) -> None:
        def broken(task_spec: str, session: Session) -> dict[str, Any]:
            raise error

        with pytest.raises(type(error)):
            prefetch(broken, SPECS)


class TestSpecs:
    @pytest.mark.parametrize(
        ("patterns", "path", "is_one"),
        [
            (["specs/"], "specs/pier.md", True),
            (["specs/"], "specs/2026/pier.md", True),
            (["specs/*.md"], "pages/pier.md", False),
            (["*.spec.md"], "pages/pier.spec.md", True),
            (["specs/", "!specs/draft-*"], "specs/draft-pier.md", False),
            (["*"], "memories/decision/pier.md", False),
            (["*"], "channels/odile/pier.md", False),
            ([], "specs/pier.md", False),
        ],
    )
    def test_patterns_are_as_in_a_gitignore(self, patterns: list[str], path: str, is_one: bool) -> None:
        assert (path in Specs.of(patterns)) is is_one

    def test_what_is_no_pattern_is_told(self) -> None:
        with pytest.raises(ConfigError, match=r"tier2\.specs = '\[z-a\]' is no pattern"):
            Specs.of(["specs/", "[z-a]"])

    @pytest.mark.parametrize(
        ("branch", "specs"),
        [
            ("feature/Pier_lights", ["specs/pier.md"]),
            ("new-ferry-at-the-pier", ["specs/pier.md", "specs/ferry.md"]),
            ("rapier", ["specs/crew.md"]),
            ("", ["specs/crew.md"]),
        ],
    )
    def test_a_branch_is_about_the_specs_in_its_name_else_about_the_latest(self, branch: str, specs: list[str]) -> None:
        changed = {"specs/ferry.md": 1, "specs/pier.md": 2, "specs/crew.md": 3, "pages/rapier.md": 4}
        assert Specs.of(["specs/"]).for_branch(branch, changed) == specs
        assert Specs.of(["plans/"]).for_branch(branch, changed) == []
