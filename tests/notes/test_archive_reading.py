"""Archives that somebody made, or that something happened to: each fault is told, and nothing is left behind."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import tarfile
from pathlib import Path
from typing import Any

import pytest

from notebook_sync import Notebook
from notebook_sync.errors import NotebookError
from notebook_sync.files.facts import id_of
from notebook_sync.notes.archive import format as archive_format

Member = tuple[tarfile.TarInfo, bytes]


def _member(name: str, raw: bytes = b"", **fields: Any) -> Member:
    info = tarfile.TarInfo(name)
    info.size = len(raw)
    for key, value in fields.items():
        setattr(info, key, value)
    return info, raw


BESIDE = [_member(name) for name in archive_format.BESIDE[:-1]]
NOTE = _member("files/pages/ferry.md", b"# The ferry\n")
LINE = {
    "day": "2026-03-01",
    "entry": {"id": "1", "content": "x", "source": "s", "tags": [], "score": 1, "timestamp": 3},
}
FACT = {"id": "1", "content": "The pier light is green", "path": "facts/notes.md", "section": "", "line": 3}


def _fact(**changed: Any) -> bytes:
    """A line of a fact as an export writes it, but for what is changed."""
    text = "The pier light is green"
    usual = {"decay_rate": 0.01, "importance": 0.5, "access_count": 0, "metadata": {}, "history": []}
    then = dict.fromkeys(("created_at", "updated_at"), "2026-02-18T10:30:00+00:00")
    never = dict.fromkeys(("last_accessed", "gone_at"))
    return json.dumps({**FACT, **usual, **then, **never, "id": id_of(text), **changed}).encode() + b"\n"


def _manifest(whole_members: list[Member], **changed: Any) -> Member:
    listed = [
        {"name": info.name, "size": info.size, "sha256": hashlib.sha256(raw).hexdigest()} for info, raw in whole_members
    ]
    counts = dict.fromkeys(("notes", "files", "bytes", "entries", "longterm", "checkpoints", "commits"), 0)
    whole = {"format": 1, "program": "x", "counts": counts, "git": None, "lost": None, "members": listed, **changed}
    return _member("manifest.json", json.dumps(whole).encode())


def _packed(members: list[Member]) -> bytes:
    out = io.BytesIO()
    for info, raw in members:
        out.write(info.tobuf(tarfile.PAX_FORMAT) + raw + b"\0" * (-len(raw) % 512))
    return gzip.compress(out.getvalue() + b"\0" * 1024, 1)


def _announced(*given: Member, **changed: Any) -> bytes:
    whole = [*given, *BESIDE]
    return _packed([_manifest(whole, **changed), *whole])


def _lines(name: str, raw: bytes) -> bytes:
    whole = [NOTE, *(_member(name, raw) if info.name == name else (info, held) for info, held in BESIDE)]
    return _packed([_manifest(whole), *whole])


def _claiming(name: str, size: int, times: int = 1) -> bytes:
    return _announced(members=[{"name": name, "size": size, "sha256": "0" * 64}] * times)


def _of_kind(kind: bytes) -> bytes:
    return _unlike_manifest(_member(NOTE[0].name, type=kind, linkname="/etc/passwd"))


def _with_bundle(raw: bytes, **git: Any) -> bytes:
    whole = [NOTE, *BESIDE, _member("history.bundle", raw)]
    known = {"form": "sha1", "branch": "refs/heads/main", "head": "0" * 40, "commits": 1, **git}
    return _packed([_manifest(whole, git=known), *whole])


def _unlike_manifest(real: Member, announced: Member = NOTE) -> bytes:
    return _packed([_manifest([announced, *BESIDE]), real, *BESIDE])


BROKEN: dict[str, tuple[bytes, str]] = {
    "leads up": (_announced(_member("files/../../x.md")), "leads out of the notebook"),
    "absolute": (_announced(_member("/etc/cron.d/x")), "leads out of the notebook"),
    "absolute below files": (_announced(_member("files//etc/x")), "is no path in a notebook"),
    "beside what is known": (_announced(_member("bin/x")), "is nothing that an archive"),
    "git's own": (_announced(_member("files/.git/hooks/post-commit", b"#!/bin/sh\n")), "belongs to git"),
    "git's own, otherwise": (_announced(_member("files/pages/.Gi\u200dt/config")), "belongs to git"),
    "this program's own": (_announced(_member("files/.NOTEBOOK/tokens.json")), "belongs to git or to this program"),
    "NUL": (_announced(_member("files/a\0b.md")), "is no path|stands where"),
    "half a character": (
        _claiming("files/\ud800", 0),
        "is not UTF-8",
    ),
    "too long": (_announced(_member("files/" + "x" * 300)), "is too long"),
    "twice": (_announced(NOTE, NOTE), "is in it twice"),
    "twins": (_announced(NOTE, _member("files/Pages/tide.md")), "one name to some systems"),
    "unlike twins": (_announced(NOTE, _member("files/pages/FERRY.md")), "one name to some systems"),
    "a file and a folder": (
        _announced(_member("files/a", b"x"), _member("files/a/b", b"x")),
        "is there already|[Ee]xists",
    ),
    "a link": (
        _of_kind(tarfile.SYMTYPE),
        "is a symbolic link",
    ),
    "a hard link": (_of_kind(tarfile.LNKTYPE), "is a link"),
    "a device": (_of_kind(tarfile.CHRTYPE), "is a device"),
    "a pipe": (_of_kind(tarfile.FIFOTYPE), "is a pipe"),
    "a folder": (_of_kind(tarfile.DIRTYPE), "is a folder"),
    "another name": (_unlike_manifest(_member("files/../x.md", NOTE[1])), "stands where"),
    "another text": (_unlike_manifest(_member(NOTE[0].name, b"# The Ferry\n")), "its digest differs"),
    "another size": (_unlike_manifest(_member(NOTE[0].name, b"# The ferry!\n")), "13 bytes, and its manifest says 12"),
    "less than announced": (_packed([_manifest([NOTE, *BESIDE]), NOTE, *BESIDE[:-1]]), "is missing"),
    "more than announced": (_packed([_manifest([NOTE, *BESIDE]), NOTE, *BESIDE, _member("x")]), "does not name"),
    "a time that is none": (
        _announced(_member("files/a.md", pax_headers={"mtime": "1e999999999"})),
        "no file can have",
    ),
    "too many": (_claiming("x", 0, 200_001), "members, more than"),
    "too large": (_claiming("files/a", 2 << 30), "is too large"),
    "too large in all": (_claiming("files/a", 1 << 40), "in all"),
    "a manifest that is too large": (_packed([_member("manifest.json", size=1 << 40)]), "manifest is too large"),
    "a header that is too large": (
        _packed([_member("manifest.json", pax_headers={"comment": "x" * 2**20})]),
        "a header in it is too large",
    ),
    "a later format": (_announced(format=2), "format 2.*install a later one"),
    "no format": (_announced(format="1"), "names no format"),
    "no manifest": (_packed([NOTE, *BESIDE]), "stands where 'manifest.json'"),
    "a manifest that is no JSON": (_packed([_member("manifest.json", b"{")]), "is not JSON"),
    "a manifest that is deep": (_packed([_member("manifest.json", b"[" * 100_000)]), "is not JSON"),
    "a manifest of something else": (_packed([_member("manifest.json", b"[1]")]), "names no format"),
    "a manifest that lacks its counts": (_announced(counts={}), "lacks something"),
    "a manifest with odd members": (_announced(members=[7]), "lacks something"),
    "no stores' lines": (_packed([_manifest([NOTE]), NOTE]), "mirror.jsonl is missing"),
    "cut off": (_announced(NOTE)[:-40], "cannot be imported"),
    "a wrong checksum": (_announced(NOTE)[:-8] + b"\1" * 8, "CRC check failed"),
    "empty": (b"", "cannot be imported"),
    "no gzip": (b"PK\3\4 is not what it says", "[Nn]ot a gzip"),
    "no tar": (gzip.compress(b"x" * 2000), "cannot be imported"),
    "lines that are cut": (_lines("stream.jsonl", b"{}"), "stream.jsonl: line 1"),
    "lines of something else": (_lines("mirror.jsonl", b"{}\n"), "mirror.jsonl: line 1"),
    "lines that are no objects": (_lines("longterm.jsonl", b"[]\n"), "longterm.jsonl: line 1"),
    "an entry without a time": (_lines("stream.jsonl", json.dumps(LINE).encode() + b"\n"), "stream.jsonl: line 1"),
    "a score that is none": (_lines("longterm.jsonl", b'{"score": NaN}\n'), "NaN is no number"),
    "a checkpoint that names an option": (
        _lines("checkpoints.jsonl", b'{"id":"1","name":"","commit":"-o"}\n'),
        "line 1",
    ),
    "a fact of another text": (
        _lines("facts.jsonl", json.dumps(FACT).encode() + b"\n"),
        "'id' is not that of its text",
    ),
    "a fact with a time for its metadata": (
        _lines("facts.jsonl", _fact(metadata={"\0time": 1000})),
        "'metadata' is not an object",
    ),
    "a fact with a number that no store holds": (
        _lines("facts.jsonl", _fact(metadata={"a": [10**40]})),
        "is not whole numbers of 64 bits",
    ),
    "a use that is none": (
        _lines("use.jsonl", b'{"id":"1","accesses":-1,"last_accessed":null,"score":null}\n'),
        "'accesses' is not a whole number",
    ),
    "a bundle that is none": (_with_bundle(b"# v2 git bundle\n\nPACK"), "cannot be made again"),
    "a branch that leads out": (
        _with_bundle(b"", branch="refs/heads/../../config"),
        "cannot be made again",
    ),
    "a branch that is an option": (_with_bundle(b"", branch="--upload-pack=x"), "is no branch"),
    "a bundle that nothing is told of": (_with_bundle(b"", commits=0), "tells of no commits"),
    "git of another kind": (_with_bundle(b"", form="md5"), "knows no object format"),
    "settings that are none": (_announced(_member("files/notebook.toml", b"[mirror]\ndatabse = 1\n")), "database"),
    "settings that are no text": (_announced(_member("files/notebook.toml", b"\xff")), "not UTF-8"),
}


@pytest.mark.parametrize("case", BROKEN)
def test_an_archive_that_is_not_as_it_should_be_leaves_nothing_behind(tmp_path: Path, case: str) -> None:
    raw, reason = BROKEN[case]
    archive = tmp_path / "given.tar.gz"
    archive.write_bytes(raw)
    with pytest.raises(NotebookError, match=reason) as refusal:
        Notebook.import_archive(archive, tmp_path / "deep" / "copy")
    assert "given.tar.gz" in str(refusal.value)
    assert [path.name for path in tmp_path.iterdir()] == ["given.tar.gz"]


def test_the_archives_of_these_tests_can_be_imported_where_nothing_is_wrong(tmp_path: Path) -> None:
    (tmp_path / "given.tar.gz").write_bytes(_announced(NOTE))
    Notebook.import_archive(tmp_path / "given.tar.gz", tmp_path / "copy")
    assert (tmp_path / "copy" / "pages" / "ferry.md").read_bytes() == NOTE[1]


def test_an_archive_of_before_facts_and_uses_were_in_any_can_be_imported(tmp_path: Path) -> None:
    first = [(info, raw) for info, raw in [NOTE, *BESIDE] if info.name not in {"facts.jsonl", "use.jsonl"}]
    (tmp_path / "given.tar.gz").write_bytes(_packed([_manifest(first), *first]))
    assert Notebook.import_archive(tmp_path / "given.tar.gz", tmp_path / "copy").notes == 1


def test_what_an_archive_lets_others_do_is_not_taken_over(tmp_path: Path) -> None:
    (tmp_path / "given.tar.gz").write_bytes(_announced(_member("files/x", b"x", mode=0o6777)))
    Notebook.import_archive(tmp_path / "given.tar.gz", tmp_path / "copy")
    assert (tmp_path / "copy" / "x").stat().st_mode & 0o7777 == 0o755


def test_an_archive_that_is_not_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(NotebookError, match="no such file"):
        Notebook.import_archive(tmp_path / "given.tar.gz", tmp_path / "copy")
