"""What a change leaves: versions and breadcrumbs, stream lines, events, authors by intent, and who may read it."""

from datetime import UTC, datetime
from hashlib import sha256
from typing import Any

import pytest

from notebook_sync.store.rows import EVERYTHING, Is
from notebook_sync.sync.apply import describe_change, stream_entry
from notebook_sync.sync.project import fold_tags
from tests.sync.world import World

PAGE = "---\ntags: [a]\n---\n# Plan\n\nIntro.\n\n## Budget\n\nTen.\n\n## Old\n\nGone.\n"


def crumbs(world: World, note: str) -> list[tuple[int, str, str]]:
    rows = world.index.history.find(Is("note", "=", note), order=("version", "at"))
    return [(row["version"], row["summary"], row["changed_by"]) for row in rows]


def intent(path: str, digest: str, **more: Any) -> dict[str, Any]:
    fields = {"session": "task", "agent": "scribe", "reason": "the mill asked for it", "at": datetime.now(UTC)}
    return {"id": f"1:{path}", "path": path, "digest": digest, **fields, **more}


# History.


def test_each_new_text_is_a_version_with_one_crumb(world: World) -> None:
    world.sync()
    world.save({"plan.md": PAGE})
    world.write("plan.md", PAGE.replace("[a]", "[b]").replace("Ten", "Nine").replace("Old", "New"))
    for _ in range(3):
        world.sync()
    world.move("plan.md", "winter.md")
    assert crumbs(world, "winter") == [
        (1, "Created", "owner"),
        (2, "Changed tags; changed Budget; added New; removed Old", "owner"),
        (2, "Moved from plan.md", "owner"),
    ]
    assert world.rows()["winter.md"]["version"] == 2


def test_another_id_in_place_is_named(world: World) -> None:
    world.save({"good.md": "---\nid: x\n---\ngood"})
    world.save({"good.md": "---\nid: y\n---\ngood"})
    assert crumbs(world, "y")[-1] == (2, "Changed the id", "owner")


def test_only_fifty_crumbs_are_kept(world: World) -> None:
    for number in range(60):
        world.write("good.md", f"{number}")
        world.engine.look(["good.md"])
    versions = [version for version, *_ in crumbs(world, "good")]
    assert versions == list(range(11, 61))


def test_a_rebuild_is_no_change(world: World) -> None:
    world.sync()
    world.save({"good.md": "two"})
    before = crumbs(world, "good"), world.actions(), world.rows()["good.md"]["version"]
    assert world.engine.sync(force=True, allow_empty=True).updated == 1
    assert (crumbs(world, "good"), world.actions(), world.rows()["good.md"]["version"]) == before


def test_the_first_commit_says_when_a_note_was_created(world: World) -> None:
    def created_at(paths: list[str]) -> dict[str, datetime]:
        return {path: datetime(2020, 1, 1, tzinfo=UTC) for path in paths if path == "good.md"}

    world.write("named.md", "---\ncreated_at: 2019-05-01T00:00:00Z\n---\ntext\n")
    world.write("new.md", "new")
    world.engine._created_at = created_at
    world.sync()
    years = {path: row["created_at"].year for path, row in world.rows().items()}
    assert years == {"good.md": 2020, "named.md": 2019, "new.md": datetime.now(UTC).year}
    for text in ("---\ncreated_at: 2018-05-01T00:00:00Z\n---\ngood\n", "good"):
        world.save({"good.md": text})
        assert world.rows()["good.md"]["created_at"].year == 2018


@pytest.mark.parametrize(
    ("after", "expected"),
    [
        ({"title": "B"}, "Changed title"),
        ({"fields": {"topic": "x"}}, "Changed topic"),
        ({"content": "other"}, "Changed the text"),
        ({"content": "other", "summary": "new"}, "Changed the text"),
        ({}, "Changed the frontmatter"),
        (
            {
                "content": "".join(f"# {letter}\n" for letter in "abcde"),
                "sections": [[letter, 1, letter, 1, 4 * at, 4 * at + 4] for at, letter in enumerate("abcde")],
            },
            "Added a, b, c and 2 more",
        ),
    ],
)
def test_a_change_in_one_line(after: dict[str, Any], expected: str) -> None:
    names = ("title", "summary", "status", "provenance", "content")
    before: dict[str, Any] = {**dict.fromkeys(names, "A"), "tags": [], "fields": {}, "sections": []}
    assert describe_change(before, before | after) == expected


# The stream.


def test_the_first_sync_of_an_old_folder_is_one_line(world: World) -> None:
    world.save({"b.md": "b", "channels/scribe/global/c.md": "private, so not counted"})
    (line,) = world.index.stream.find()
    assert (line["content"], line["note"]) == ("[Notebook CREATED] notebook: 2 notes indexed", "")
    assert line["tags"] == []
    assert (crumbs(world, "good"), world.index.events.count()) == ([], 0)
    world.save({"c.md": "c"})
    assert world.actions()[1:] == [("created", "c.md")]


def test_a_tools_first_note_is_announced_before_the_first_sync(world: World) -> None:
    world.engine.look(["good.md"])
    assert world.actions() == [("created", "good.md")]


def test_lines_say_what_happened(world: World) -> None:
    world.sync()
    world.save({"plan.md": PAGE})
    world.save({"plan.md": PAGE.replace("Ten", "Nine")})
    world.move("plan.md", "winter.md")
    world.save({"winter.md": None})
    lines = world.index.stream.find(order=("at",))[1:]
    assert [(line["action"], line["path"]) for line in lines] == [
        ("created", "plan.md"),
        ("updated", "plan.md"),
        ("moved", "winter.md"),
        ("deleted", "winter.md"),
    ]
    day = lines[1]["at"].astimezone(world.settings().timezone).date().isoformat()
    whole = {"content": "[Notebook UPDATED] Plan: Intro.", "tags": ["pages"], "source": "notebook", "score": 0.8}
    assert {name: lines[1][name] for name in (*whole, "day")} == {**whole, "day": day}
    assert lines[1]["ref"]["version"] == 2


def test_the_same_event_has_the_same_id_on_any_machine() -> None:
    names = ("id", "digest", "path", "audience", "collection", "status", "provenance", "title", "summary")
    at = datetime(2026, 3, 1, tzinfo=UTC)
    note = {**dict.fromkeys(names, "x"), "version": 1, "updated_at": at}
    ids = [stream_entry(note, *more)["id"] for more in (("updated", at, UTC), ("updated", at, UTC, "scribe"))]
    assert {*ids} == {ids[0]} != {stream_entry(note, "moved", at, UTC)["id"]}


def test_private_notes_have_no_line_and_leave_and_enter_as_new_and_deleted(world: World) -> None:
    world.sync()
    world.save({"channels/scribe/global/a.md": "---\nid: x\n---\n# Secret\n"})
    seen = [world.actions()[1:]]
    for old, new in (("channels/scribe/global/a.md", "a.md"), ("a.md", "channels/scribe/global/b.md")):
        world.move(old, new)
        seen.append(world.actions()[1:])
    assert seen == [[], [("created", "a.md")], [("created", "a.md"), ("deleted", "a.md")]]
    assert world.rows()["channels/scribe/global/b.md"]["version"] == 1


def test_a_file_that_sessions_see_in_part_shows_its_path_only(world: World) -> None:
    """And one that some session is denied as a whole is not named."""
    world.configure('[[prompt.files]]\npath = "gift.md"\nsessions = ["owner"]\n')
    world.sync()
    for path in ("runtime/reminders.md", "gift.md", "facts/core.md"):
        world.save({path: "# Title\n\nSecret %% hidden %%\n"})
    contents = [line["content"] for line in world.index.stream.find(order=("at",))[1:]]
    assert contents == ["[Notebook CREATED] runtime/reminders.md"]


# Authors.


def test_who_applies_the_bytes_of_a_tool_names_it(world: World) -> None:
    """The watcher needs no lock: the process that is first takes the author from the intent."""
    world.sync()
    world.write("a.md", "by a tool")
    digest = sha256(b"by a tool").hexdigest()
    world.index.intents.put([intent("a.md", digest), {**intent("good.md", "other"), "id": "2"}])
    world.engine.look(["a.md"])
    assert crumbs(world, "a") == [(1, "Created: the mill asked for it", "agent:scribe")]
    assert (world.index.stream.find(order=("-at",))[0]["agent"], world.index.events.count()) == ("scribe", 0)
    assert {row["path"]: row["applied"] for row in world.index.intents.find()} == {"a.md": 1, "good.md": 0}
    world.write("a.md", "by hand")
    world.engine.look(["a.md"])
    assert crumbs(world, "a")[-1][2] == "owner"
    (event,) = world.index.events.find()
    assert (event["kind"], event["path"], event["fields"]["paths"]) == ("changed", "a.md", ["a.md"])


def test_what_a_tool_deletes_or_renames_needs_no_wait(world: World) -> None:
    world.write("a.md", "a")
    world.sync_table = type(world.sync_table)(settle_ms=100_000)
    world.engine = world.restarted()
    world.engine.look(None)
    world.rename("a.md", "b.md")
    world.index.intents.put([intent("b.md", world.rows()["a.md"]["digest"], moved_from="a.md")])
    assert world.engine.look(["a.md", "b.md"]).moved == 1
    world.delete("b.md")
    world.index.intents.put([{**intent("b.md", ""), "id": "2"}])
    assert world.engine.look(["b.md"]).deleted == 1
    assert [line["agent"] for line in world.index.stream.find(order=("-at",), limit=2)] == ["scribe", "scribe"]


# Audience.


def test_a_copy_is_as_private_as_its_original(world: World) -> None:
    gift = '[[prompt.files]]\npath = "plans/gift.md"\nsessions = ["owner"]\n'
    world.configure(f'{gift}[[prompt.files]]\npath = "a/core.md"\n')
    expected = {
        "good.md": "",
        "plans/gift.md": "apart",
        "plans/gift (conflicted copy 2026-11-20 093012).md": "apart",
        "plans/gift 2.md": "apart",
        "good 2.md": "",
        "runtime/reminders.sync-conflict-20261120-093012-ABCD123.md": "apart",
        "facts/core.md": "apart",
        "facts/core 2.md": "apart",  # although another file of the prompt has the name
        "a/core.md": "apart",
        "channels/scribe/global/a.md": "channels/scribe/global",
    }
    for path in expected:
        world.save({path: f"{path}"})
    assert {path: row["audience"] for path, row in world.rows().items()} == expected


def test_new_settings_give_every_row_its_audience_even_that_of_a_damaged_file(world: World) -> None:
    """The next look at everything does it, in whichever process that is."""
    world.save({"plan.md": "# Ferry plan\n", "facts/a.md": "- The toll is ten crowns\n"})
    assert world.index.documents.frequencies(["ferri"])[1]["ferri"] == 1
    world.save({"plan.md": b"# Ferry \0", "facts/a.md": b"- The toll \0"})
    paths = "".join(f'[[prompt.files]]\npath = "{path}"\nsessions = ["owner"]\n' for path in ("plan.md", "facts/a.md"))
    world.configure(paths)
    world.sync()
    row = world.rows()["plan.md"]
    assert (row["audience"], row["content"], bool(row["stale"]), row["version"]) == (
        "apart",
        "# Ferry plan\n",
        True,
        1,
    )
    assert world.index.documents.frequencies(["ferri"])[1]["ferri"] == 0
    assert world.facts()["The toll is ten crowns"]["audience"] == "apart"
    rev = world.index.rev()
    world.sync()
    assert world.index.rev() == rev
    world.delete("notebook.toml")
    world.engine = world.restarted()
    world.sync()
    assert world.facts()["The toll is ten crowns"]["audience"] == world.rows()["plan.md"]["audience"] == ""


# Rows.


@pytest.mark.parametrize(
    ("tags", "expected"),
    [(("Ferry",), ["ferry"]), (("a/B/c", "#a/x"), ["a", "a/b", "a/b/c", "a/x"]), (("/", " #"), [])],
)
def test_tags_are_folded_and_have_their_ancestors(tags: tuple[str, ...], expected: list[str]) -> None:
    assert fold_tags(tags) == expected


def test_what_the_author_wrote_is_kept_next_to_folded_tags(world: World) -> None:
    world.save({"a.md": "---\ntags: [Ferry/Winter]\naliases: [The Plan]\n---\nSee [[Good|it]] and [x](b.md).\n"})
    row = world.rows()["a.md"]
    assert (row["tags"], row["fields"]["tags"]) == (["ferry", "ferry/winter"], ["Ferry/Winter"])
    assert (row["aliases"], row["links"]) == (["The Plan"], ["Good", "b.md"])


def test_two_engines_make_the_same_rows(world: World) -> None:
    """Law 1: drop the index, look again, and nothing that a file says is missing."""
    world.save(
        {
            "facts/a.md": "- The toll is ten crowns\n",
            "memories/decision/a.md": "---\nkind: decision\npriority: 3\n---\n# Key\n\n## Context\n\nWhy.\n",
        }
    )
    before = world.rows(), world.facts().keys()
    world.index.documents.delete([row["id"] for row in world.rows().values()])
    world.index.counters.delete([row["id"] for row in world.index.counters.find(EVERYTHING)])
    world.sync()
    assert {path: {**row, "rev": 0} for path, row in world.rows().items()} == {
        path: {**row, "rev": 0} for path, row in before[0].items()
    }
    assert world.facts().keys() == before[1]
