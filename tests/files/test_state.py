"""Where a notebook's state is, whose it is, and who may read it."""

import json
import pwd
import shutil
import stat
from pathlib import Path
from unittest.mock import Mock

import pytest

from notebook_sync.errors import NotANotebook, ReadOnly, UnsafePath
from notebook_sync.files import private, state
from notebook_sync.files.locks import write_lock
from notebook_sync.files.private import close_to_others, read_json, read_private, write_private
from notebook_sync.files.state import Place, file_system, find_root
from tests.files.notebooks import write
from tests.processes import start_process


def marked(place: Place) -> Place:
    """The place, with something in its state folder to know it by."""
    (place.state / "index.db").write_text(place.replica)
    return place


def has_mark_of(place: Place, other: Place) -> bool:
    return place.index_path.exists() and place.index_path.read_text() == other.replica


def test_finding_writes_nothing_and_opening_makes_everything_private(folder: Path, state_dir: Path) -> None:
    assert Place.find(folder).notebook_id == Place.find(folder).replica == ""
    assert (list(folder.iterdir()), state_dir.exists()) == ([], False)
    place = Place.open(folder)
    assert place == Place.open(folder) == Place.find(folder)
    assert (place.state.parent, place.state.name.partition("-")[0]) == (state_dir, "notebook")
    marks = {path.name: path.read_text() for path in (folder / ".notebook").iterdir()}
    assert marks == {".gitignore": "*\n", "id": f"{place.notebook_id}\n"}
    assert place.findings() == {}
    place.remember(mounts=["disk"])
    assert place.findings() == {"mounts": ["disk"]}
    assert file_system(folder)
    for path in (place.private, place.state, *place.private.iterdir(), *place.state.iterdir()):
        assert stat.S_IMODE(path.stat().st_mode) & 0o077 == 0


@pytest.mark.parametrize(
    ("variables", "home"),
    [
        ({"NOTEBOOK_STATE_DIR": "/named", "XDG_STATE_HOME": "/xdg", "HOME": "/ines"}, "/named"),
        ({"XDG_STATE_HOME": "/xdg", "HOME": "/ines"}, "/xdg/notebook-sync"),
        ({"HOME": "/ines"}, "/ines/.local/state/notebook-sync"),
    ],
)
def test_state_is_where_the_environment_says(
    folder: Path, monkeypatch: pytest.MonkeyPatch, variables: dict[str, str], home: str
) -> None:
    monkeypatch.delenv("NOTEBOOK_STATE_DIR")
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert Place.find(folder).state.parent == Path(home)


def test_the_id_in_notebook_toml_wins_and_broken_settings_do_not_matter_here(folder: Path) -> None:
    for toml in ('[notebook]\nid = "harbour"\n', "broken"):
        write(folder, {"notebook.toml": toml})
        assert Place.open(folder).notebook_id == "harbour"


def test_a_cleaned_tree_keeps_its_state(folder: Path) -> None:
    place = marked(Place.open(folder))
    shutil.rmtree(folder / ".notebook")
    assert find_root(folder) == folder  # as a folder that cannot be written, and so never had a mark
    assert Place.open(folder) == place


def test_nothing_brings_a_lost_root_back(folder: Path) -> None:
    place = Place.open(folder)
    shutil.rmtree(folder)
    Place.open(folder)
    with pytest.raises(ReadOnly), write_lock(place, "edit"):
        pass
    assert not folder.exists()


@pytest.mark.parametrize("name", ["notebook", "no\udce9l", "n" * 255])  # the second is not UTF-8
def test_a_moved_notebook_takes_its_state_along(folder: Path, name: str) -> None:
    folder = folder.rename(folder.with_name(name))
    place = marked(Place.open(folder))
    moved = folder.rename(folder.with_name("moved"))
    assert Place.find(moved).state == place.state
    again = Place.open(moved)
    assert (has_mark_of(again, place), place.state.exists()) == (True, False)
    assert (again.notebook_id, again.replica) == (place.notebook_id, place.replica)


def test_a_notebook_that_is_mounted_elsewhere_takes_its_state_along(folder: Path) -> None:
    place = marked(Place.open(folder))
    mounted = folder.rename(folder.with_name("mounted"))
    folder.mkdir()  # as where a volume was mounted before
    assert has_mark_of(Place.open(mounted), place)


def test_a_copy_gets_a_state_of_its_own(folder: Path) -> None:
    place = marked(Place.open(folder))
    other = Place.open(Path(shutil.copytree(folder, folder.with_name("copy"))))
    assert (has_mark_of(other, place), other.notebook_id) == (False, place.notebook_id)
    assert other.replica != place.replica


def test_another_notebook_at_the_path_sets_the_old_state_aside(folder: Path) -> None:
    first = marked(Place.open(folder))
    old = folder.rename(folder.with_name("old"))
    write(folder, {".notebook/id": "another\n"})
    second = Place.open(folder)
    assert (second.notebook_id, second.index_path.exists()) == ("another", False)
    assert has_mark_of(Place.open(old), first)
    assert Place.open(folder) == second


def test_a_damaged_place_file_is_made_again(folder: Path) -> None:
    place = marked(Place.open(folder))
    (place.state / "place.json").write_text('{"notebook_id": 5')
    again = Place.open(folder)
    assert (has_mark_of(again, place), again.notebook_id) == (True, place.notebook_id)
    assert again.replica not in ("", place.replica)


def open_and_note(folder: Path, answer: Path) -> None:
    place = Place.open(folder)
    answer.write_text(json.dumps([place.notebook_id, place.replica]))


def test_processes_that_start_at_once_agree(folder: Path, tmp_path: Path) -> None:
    answers = [tmp_path / f"answer-{number}" for number in range(6)]
    for process in [start_process(open_and_note, folder, answer) for answer in answers]:
        process.join()
    assert len({answer.read_text() for answer in answers}) == 1


def test_a_tree_that_cannot_be_written_has_its_locks_in_the_state_folder(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(state.os, "access", lambda path, _: path != folder)
    place = Place.open(folder)
    assert place.read_only
    assert (place.lock_folder, list(folder.iterdir())) == (place.state, [])


@pytest.mark.parametrize("kind", ["nfs4", "cifs", "fuse.sshfs"])
def test_a_state_folder_that_cannot_be_used_is_refused(
    folder: Path, state_dir: Path, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for target, name, fake, reason in (
        (state, "file_system", lambda _: kind, kind),
        (state.os, "access", lambda path, _: path != state_dir, "denied"),
    ):
        with monkeypatch.context() as patch:
            patch.setattr(target, name, fake)
            with pytest.raises(ReadOnly, match=f"{reason}.*NOTEBOOK_STATE_DIR"):
                Place.open(folder)
    state_dir.rmdir()
    state_dir.write_text("a file")
    with pytest.raises(ReadOnly, match="NOTEBOOK_STATE_DIR"):
        Place.open(folder)


@pytest.mark.parametrize("link", [".notebook", ".notebook/id"])
def test_a_link_that_a_cloned_folder_brings_is_not_followed(folder: Path, tmp_path: Path, link: str) -> None:
    victim = tmp_path / "victim"
    victim.mkdir()
    write(tmp_path, {"secret": "x"})
    (folder / link).parent.mkdir(exist_ok=True)
    (folder / link).symlink_to(victim if link == ".notebook" else tmp_path / "secret")
    if link == ".notebook":
        with pytest.raises(UnsafePath):
            Place.open(folder)
    else:
        Place.open(folder)
    assert (list(victim.iterdir()), (tmp_path / "secret").read_text()) == ([], "x")


def test_the_root_is_the_nearest_folder_with_a_mark(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(folder, {"outer/notebook.toml": "", "outer/inner/.notebook/id": "x", "outer/inner/pages/a.md": "x"})
    found = [find_root(folder / start) for start in ("outer/inner/pages", "outer")]
    assert found == [folder / "outer/inner", folder / "outer"]
    with pytest.raises(NotANotebook):
        find_root(folder)
    assert find_root(folder, adopt=True) == folder
    monkeypatch.setenv("HOME", str(folder))
    for start, says in ((folder, "cannot be a notebook"), (Path("/"), "cannot be"), (folder / "gone", "not a folder")):
        with pytest.raises(NotANotebook, match=says):
            find_root(start, adopt=True)


def test_a_user_without_a_home_folder_can_name_the_folder_of_states(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("HOME")
    monkeypatch.setattr(pwd, "getpwuid", Mock(side_effect=KeyError))  # as for a number that a container was given
    assert find_root(folder, adopt=True) == folder
    assert Place.open(folder).state.parent == state.state_home()
    for name in ("NOTEBOOK_STATE_DIR", "XDG_STATE_HOME"):
        monkeypatch.delenv(name, raising=False)
    assert state.state_home() == Path("/.local/state/notebook-sync")


def test_a_folder_of_a_user_that_there_is_not_is_not_there() -> None:
    with pytest.raises(NotANotebook, match="~no-such-user/notes is not a folder"):
        find_root(Path("~no-such-user/notes"))


def test_a_folder_that_was_deleted_around_the_caller_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    with pytest.raises(NotANotebook, match="was deleted"):
        find_root(Path())


# Private files.


def test_a_private_file_is_written_whole_or_not_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "folder/x.json"
    write_private(path, b'{"a": 1}')
    inode = path.stat().st_ino
    write_private(path, b'{"a": 1}')
    assert (read_private(path), read_json(path), path.stat().st_ino) == (b'{"a": 1}', {"a": 1}, inode)
    monkeypatch.setattr(private.os, "fsync", lambda _: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        write_private(path, b"other")
    assert [each.read_bytes() for each in path.parent.iterdir()] == [b'{"a": 1}']
    path.unlink()
    path.symlink_to(tmp_path)
    assert read_json(path) == read_json(tmp_path / "gone") == {}


def test_what_others_could_read_is_closed_and_named(tmp_path: Path) -> None:
    write(tmp_path, {"private/tokens.json": "x", "private/fine": "x"})
    (tmp_path / "private/fine").chmod(0o600)
    (tmp_path / "private/link").symlink_to("/etc/passwd")
    (tmp_path / "private").chmod(0o755)
    closed = close_to_others(tmp_path / "private")
    assert {path.name for path in closed} == {"private", "tokens.json"}
    assert close_to_others(tmp_path / "private") == close_to_others(tmp_path / "gone") == []
