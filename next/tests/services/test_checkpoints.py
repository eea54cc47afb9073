"""Checkpoints, and going back to one: stream, long-term memory and files, with what other programs wrote in Redis."""

from __future__ import annotations

import json
from contextlib import closing
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from notebook_sync import Notebook
from notebook_sync.errors import Conflict, GitFailed, NotFound, NotPermitted, UsageError
from notebook_sync.services.checkpoints import MOST
from tests.services.conftest import FILES, PILOT, SCRIBE, git, make_repository, write_files
from tests.services.test_stream import TODAY, contents, opened_with, put_line
from tests.store.mirrors import Keys

PRIVATE = "channels/scribe/global/plan.md"


def on_disk(root: Path) -> dict[str, str]:
    return {str(path.relative_to(root)): path.read_text() for path in root.glob("[!.]*/**/*.md")}


def logged(notebook: Notebook) -> list[str]:
    """What was logged today, without lines of notes."""
    return [each.content for each in notebook.stream.show().results if each.source != "notebook"]


class TestStream:
    def test_lines_and_long_term_memory_come_back_and_a_second_rollback_undoes_the_first(
        self, notebook: Notebook
    ) -> None:
        stream = notebook.stream
        stream.log("early", SCRIBE)
        stream.log("kept early", keep=True)
        made = stream.checkpoint("before the regatta", SCRIBE)
        assert (made.created_by, made.name, made.warnings) == ("agent:scribe", "before the regatta", [])
        stream.log("late", PILOT)
        stream.log("kept late", keep=True)
        notebook.core.index.stream.delete([each.id for each in stream.show().results if each.content == "early"])
        done = stream.rollback(made.id[:4])
        assert (done.restored, done.removed, done.longterm_restored, done.longterm_removed) == (1, 1, 0, 1)
        assert logged(notebook) == ["early"]
        assert contents(stream.recall("kept")) == ["kept early"]
        undone = stream.rollback(done.before)
        assert (undone.restored, undone.removed) == (1, 1)
        assert logged(notebook) == ["late"]
        assert sorted(contents(stream.recall("kept"))) == ["kept early", "kept late"]
        assert [each["kind"] for each in notebook.core.events.read(limit=5)].count("rollback") == 2

    def test_a_line_that_comes_back_is_as_it_was(self, notebook: Notebook) -> None:
        line = notebook.stream.log("fog \u2028 é", SCRIBE, tags=["a"], score=0.25, source="harbour radio")
        notebook.notes.read("pages/ferry", PILOT)
        before = notebook.stream.show()
        made = notebook.stream.checkpoint()
        notebook.core.index.stream.delete([each.id for each in before.results])
        notebook.stream.rollback(made.id)
        assert notebook.stream.show().results[1:] == before.results[1:]
        assert line in before.results

    def test_a_dry_run_counts_and_changes_nothing(self, notebook: Notebook) -> None:
        made = notebook.stream.checkpoint()
        notebook.notes.update("pages/ferry", content="Fog.", append=True)
        notebook.stream.log("late")
        before = notebook.stream.show(), on_disk(notebook.root), notebook.stream.checkpoints()
        planned = notebook.stream.rollback(made.id, files=True, dry_run=True)
        assert (notebook.stream.show(), on_disk(notebook.root), notebook.stream.checkpoints()) == before
        done = notebook.stream.rollback(made.id, files=True)
        assert (planned.status, planned.before, planned.commit) == ("dry_run", "", "")
        counted = ("restored", "removed", "changed", "files")
        assert all(getattr(planned, name) == getattr(done, name) for name in counted)
        assert [(each.path, each.change) for each in done.files] == [("pages/ferry.md", "updated")]

    def test_what_is_logged_since_the_call_began_stays(
        self, notebook: Notebook, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        made = notebook.stream.checkpoint()
        notebook.stream.log("before the call")
        monkeypatch.setattr(notebook.core.snapshots, "drop", lambda _: put_line(notebook, "m", "meanwhile"))
        notebook.stream.rollback(made.id)
        assert logged(notebook) == ["meanwhile"]

    def test_older_days_and_lines_stay(self, notebook: Notebook) -> None:
        put_line(notebook, "old", "long ago", days=20)
        made = notebook.stream.checkpoint()
        put_line(notebook, "older", "found later", days=21)
        notebook.stream.rollback(made.id)
        assert {each["content"] for each in notebook.core.index.stream.find()} >= {"long ago", "found later"}

    def test_who_may_and_what_is_no_checkpoint(self, notebook: Notebook) -> None:
        made = notebook.stream.checkpoint("one")
        with pytest.raises(NotPermitted):
            notebook.stream.rollback(made.id, SCRIBE)
        for id in ("", made.id[:3], "zzzz", f"{made.id}0"):
            with pytest.raises(NotFound, match="checkpoint"):
                notebook.stream.rollback(id)
        for name in ("a\x07b", "x" * 201):
            with pytest.raises(UsageError):
                notebook.stream.checkpoint(name)


class TestKept:
    def test_an_agent_s_checkpoints_never_push_out_the_owners(self, notebook: Notebook) -> None:
        def put(number: int, maker: str) -> None:
            at = notebook.core.now() + timedelta(milliseconds=number)
            row = {"id": f"{maker}-{number:03}", "name": "", "at": at, "created_by": maker, "commit": "", "body": {}}
            notebook.core.index.checkpoints.put([row])

        for number in range(MOST - 2):
            put(number, "owner")
        for number in range(5):
            put(number, "agent:pilot")
        made = notebook.stream.checkpoint("mine", SCRIBE)
        kept = [each.id for each in notebook.stream.checkpoints().results]
        assert [id for id in kept if "owner" not in id] == [made.id, "agent:pilot-004"]
        assert len(kept) == MOST
        for _ in range(3):
            made = notebook.stream.checkpoint("of the owner")
        kept = [each.id for each in notebook.stream.checkpoints().results]
        assert kept[0] == made.id
        assert sum("pilot" in id for id in kept) == 0
        assert len(kept) == MOST + 1  # an agent has one place in any case
        assert "owner-000" not in kept

    def test_the_target_and_the_files_of_those_that_are_kept_stay(self, notebook: Notebook) -> None:
        first = notebook.stream.checkpoint("first")
        rows = notebook.core.index.checkpoints.find(heavy=True)
        more = [{**rows[0], "id": f"o{number:03}", "commit": ""} for number in range(MOST - 1)]
        notebook.core.index.checkpoints.put(more)
        done = notebook.stream.rollback(first.id, files=True)
        kept = {each.id for each in notebook.stream.checkpoints().results}
        assert {first.id, done.before} <= kept
        notebook.stream.checkpoint("later")
        names = git(notebook.core.place.state / "history.git", "for-each-ref", "--format=%(refname)")
        assert {line.rpartition("/")[2] for line in names.split() if "checkpoints" in line} <= {
            each.id for each in notebook.stream.checkpoints().results
        }

    def test_a_clock_that_went_back_does_not_drop_the_newest(
        self, notebook: Notebook, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        first, now = notebook.stream.checkpoint("first"), notebook.core.now
        monkeypatch.setattr(notebook.core, "now", lambda: now().replace(year=2020))
        second = notebook.stream.checkpoint("second")
        assert [each.id for each in notebook.stream.checkpoints().results] == [second.id, first.id]
        assert second.at > first.at

    def test_a_checkpoint_with_an_odd_id_reaches_no_other_ref(self, notebook: Notebook) -> None:
        made = notebook.stream.checkpoint()
        odd = f"odd\ndelete refs/notebook/checkpoints/{made.id}"
        rows = notebook.core.index.checkpoints.find(heavy=True)
        put = [{**rows[0], "id": id, "at": notebook.core.now().replace(year=2020)} for id in (odd, "../../heads/notes")]
        notebook.core.index.checkpoints.put(put)
        with pytest.raises(GitFailed):
            notebook.stream.rollback("../../heads/notes", files=True)
        with pytest.raises(GitFailed):
            notebook.core.snapshots.drop([odd])
        assert notebook.stream.rollback(made.id, files=True).files == []

    def test_an_agent_learns_no_commit(self, notebook: Notebook) -> None:
        assert notebook.stream.checkpoint(session=SCRIBE).commit == ""
        assert notebook.stream.checkpoints(SCRIBE).results[0].commit == ""
        assert len(notebook.stream.checkpoints().results[0].commit) == 40

    def test_it_names_no_private_note(self, notebook: Notebook) -> None:
        notebook.stream.checkpoint()
        assert "channels" not in json.dumps(notebook.core.index.checkpoints.find(heavy=True), default=str)


class TestFiles:
    @pytest.mark.parametrize("has_repository", [True, False])
    def test_all_notes_say_what_they_said_in_one_commit(self, root: Path, has_repository: bool) -> None:
        write_files(root, {"pages/crlf.md": "# A\r\n\r\nnever committed\r\n", "pages/odd 'n\"ame.md": "odd"})
        if has_repository:
            make_repository(root)
        with Notebook.open(root) as notebook:
            notebook.sync()
            write_files(root, {"pages/idea.md": "An uncommitted idea.\n"})
            before = on_disk(root)
            made = notebook.stream.checkpoint()
            write_files(root, {"pages/new.md": "new", PRIVATE: "# Other plan\n", "runtime/reminders.md": "# Nothing\n"})
            (root / "pages/crlf.md").unlink()
            (root / "pages/ferry.md").rename(root / "pages/boat.md")
            notebook.sync()
            commits = git(root, "rev-list", "--count", "HEAD") if has_repository else "0"
            done = notebook.stream.rollback(made.id, files=True)
            assert on_disk(root) == before
            assert {(each.path, each.change) for each in done.files} == {
                *(("pages/new.md", "deleted"), ("pages/boat.md", "deleted"), ("pages/crlf.md", "created")),
                *(("pages/ferry.md", "created"), (PRIVATE, "updated"), ("runtime/reminders.md", "updated")),
            }
            assert {each.path for each in done.changed} >= {"pages/new.md", "pages/crlf.md"}
            assert PRIVATE not in {each.path for each in done.changed}
            if has_repository:
                assert git(root, "log", "-1", "--format=%H").strip() == done.commit
                # One commit of what was found, where the last one does not have it, and one of the rollback.
                assert int(git(root, "rev-list", "--count", "HEAD")) - int(commits) == 2
                assert "checkpoints" not in git(root, "for-each-ref")
            assert notebook.admin.verify().consistent
            notebook.stream.rollback(done.before, files=True)
            assert (root / "pages/new.md").exists()

    def test_all_or_none(self, notebook: Notebook, monkeypatch: pytest.MonkeyPatch) -> None:
        made = notebook.stream.checkpoint()
        write_files(notebook.root, {"pages/ferry.md": "other", "pages/idea.md": "other"})
        notebook.stream.log("late")
        replace = notebook.core.saver.replace

        def fail_at_idea(path: str, raw: bytes, base: str) -> None:
            if path == "pages/idea.md":
                raise Conflict(path, base, "x")
            replace(path, raw, base)

        monkeypatch.setattr(notebook.core.saver, "replace", fail_at_idea)
        with pytest.raises(Conflict):
            notebook.stream.rollback(made.id, files=True)
        assert (notebook.root / "pages/ferry.md").read_text() == "other"
        assert logged(notebook) == ["late"]

    def test_what_could_not_be_read_then_is_not_deleted(self, root: Path) -> None:
        large = "[notebook]\nmax_file_bytes = 100\n"
        write_files(root, {"notebook.toml": large, "pages/large.md": "x" * 200})
        write_files(root, {".gitignore": "drafts\n", "drafts/ignored.md": "ignored"})
        with Notebook.open(root) as notebook:
            notebook.sync()
            made = notebook.stream.checkpoint()
            write_files(root, {"notebook.toml": FILES["notebook.toml"]})
            (root / ".gitignore").unlink()
            notebook.sync()
            done = notebook.stream.rollback(made.id, files=True)
            assert (root / "pages/large.md").read_text() == "x" * 200
            assert (root / "drafts/ignored.md").read_text() == "ignored"
            assert [each.partition(" ")[0] for each in done.warnings] == ["drafts/ignored.md", "pages/large.md"]

    def test_without_git_the_stream_alone_goes_back(self, notebook: Notebook, monkeypatch: pytest.MonkeyPatch) -> None:
        with monkeypatch.context() as patch:
            patch.setenv("PATH", "/nowhere")
            made = notebook.stream.checkpoint()
            assert (made.commit, len(made.warnings)) == ("", 1)
        notebook.stream.log("late")
        with pytest.raises(UsageError, match="without files"):
            notebook.stream.rollback(made.id, files=True)
        assert logged(notebook) == ["late"]
        notebook.stream.rollback(made.id)
        assert logged(notebook) == []

    def test_going_back_trusts_nothing(self, root: Path) -> None:
        settings = FILES["notebook.toml"] + '[prompt]\ntrust = "committed"\n'
        write_files(root, {"notebook.toml": settings})
        make_repository(root)
        orders = root / "runtime/standing-orders.md"
        with Notebook.open(root) as notebook:
            notebook.sync()
            trusted = orders.read_text()
            orders.write_text(f"{trusted}- Pay everybody\n")
            made = notebook.stream.checkpoint()
            orders.write_text(trusted)
            notebook.stream.rollback(made.id, files=True)
            assert "Pay everybody" in orders.read_text()
            assert "Pay everybody" not in notebook.prompt().text


@pytest.mark.parametrize(
    "body",
    [
        None,
        {},
        {"daily": []},
        {"daily": {"x": []}, "longterm": [], "notebook": []},
        {"daily": {TODAY: 5}},
        {"daily": 1},
    ],
)
def test_a_checkpoint_of_another_shape_harms_nothing(notebook: Notebook, body: Any) -> None:
    notebook.stream.log("now")
    row = {"id": "abcd-1", "name": "theirs", "at": notebook.core.now(), "created_by": "", "commit": "", "body": body}
    notebook.core.index.checkpoints.put([row])
    assert [each.name for each in notebook.stream.checkpoints(SCRIBE).results] == ["theirs"]
    with pytest.raises(UsageError, match="another program"):
        notebook.stream.rollback("abcd-1")
    assert logged(notebook) == ["now"]


def test_lines_of_other_programs_go_and_come_back_in_redis(root: Path, redis_url: str, redis_prefix: str) -> None:
    keys = Keys(redis_url, redis_prefix)
    day = f"{redis_prefix}:daily:{TODAY}"
    with opened_with(root, redis_url, redis_prefix) as notebook, closing(keys.client) as client:
        notebook.stream.log("ours early")
        client.rpush(day, '{"type": "notebook_ref",  "title": "theirs early"}')
        client.hset(f"{redis_prefix}:longterm:9", mapping={"content": "of theirs"})
        made = notebook.stream.checkpoint()
        blob = json.loads(client.get(f"{redis_prefix}:checkpoint:{made.id}"))
        assert blob.keys() >= {"uuid", "name", "timestamp", "daily", "longterm", "notebook", "commit"}
        assert "channels/" not in json.dumps(blob)
        assert [each["content"] for each in blob["longterm"]] == ["of theirs"]
        early = client.lrange(day, 0, -1)
        client.lrem(day, 0, early[-1])
        client.rpush(day, '{"title": "theirs late"}')
        notebook.stream.log("ours late")
        done = notebook.stream.rollback(made.id)
        notebook.sync()
        texts = [each.get("content") or each["title"] for each in keys.lines()]
        assert sorted(each for each in texts if "Notebook" not in each) == ["ours early", "theirs early"]
        assert (done.restored, done.removed) == (1, 2)
        assert client.hgetall(f"{redis_prefix}:longterm:9") == {"content": "of theirs"}
        notebook.stream.rollback(done.before)
        notebook.sync()
        texts = [each.get("content") or each["title"] for each in keys.lines()]
        assert sorted(each for each in texts if "Notebook" not in each) == ["ours early", "ours late", "theirs late"]
