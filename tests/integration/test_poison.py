"""Notes that a database could choke on: each is mirrored or refused with a reason, and the others never notice."""

from __future__ import annotations

from tests.integration.world import World

FRONTMATTER = {
    "dates": "when: 2026-01-02\nmoment: 2026-01-02T03:04:05.678901+02:00\nearly: 0001-01-01\nlate: 9999-12-31",
    "numbers": f"big: {2**63}\nnegative: {-(2**63) - 1}\nhuge: {10**400}\nnan: .nan\ninf: .inf",
    "operators": 'where: {"$ne": 1, "a.b": {"$gt": ""}, "$where": "sleep(1)"}\n$set: {title: hacked}\na.b: dotted',
    "references": 'link: {"$ref": "pages", "$id": 1}\nid_like: {"$oid": "5f"}',
    "keys": '"": empty\n1: number\ntrue: yes\nnull: nothing\n[a, b]: list\n"nul\\0key": nul',
    "surrogate": 'text: "\\ud800"\n"\\udfff": key',
    "set": "tags: !!set {a, b}\nraw: !!binary aGVsbG8=",
    "nested": "deep: " + "[" * 900 + "]" * 900,
    "own": "_id: other\nserial: 1\ngone: true\npending: x\nusage: 9\nsource: {digest: x}\nhistory: []",
}


def fill(world: World) -> None:
    for name, lines in FRONTMATTER.items():
        world.write(f"pages/{name}.md", f"---\n{lines}\n---\n# {name}\n\nText.\n")
    world.write("pages/headings.md", "".join(f"# Heading {n} {'x' * 80}\n" for n in range(20_000)))
    world.write("pages/bullets.md", "".join(f"{'  ' * min(n, 2000)}- {n}\n" for n in range(900)))
    world.write("pages/nul.md", "# Nul\n\nA \0 byte.\n")
    (world.root / "pages/latin.md").write_bytes(b"# caf\xe9\n")
    for n in range(20):
        world.write(f"pages/good-{n}.md", f"# Good {n}\n\nText.\n")


def test_poison_stops_nobody_and_is_the_same_in_every_store(world: World, embedded: World) -> None:
    fill(world)
    served, kept = world.run("sync", "--json"), embedded.run("sync", "--json")
    assert {served.code, kept.code} <= {0, 1}
    refused = {failure["path"]: failure["error"] for failure in served.json["failed"]}
    assert all(refused.values())
    assert not [path for path in refused if "good" in path]
    documents = world.documents()
    assert documents.keys() >= {f"pages/good-{n}.md" for n in range(20)}
    assert documents.keys() | refused.keys() >= {f"pages/{name}.md" for name in FRONTMATTER}
    reference = embedded.documents()
    assert {path: reference.get(path) for path in documents} == documents
    assert world.run("sync", "--json").json["updated"] == 0
    for path, document in documents.items():
        assert document["source"]["path"] == path
        assert document["title"] != "hacked"


def test_a_note_that_the_database_cannot_hold_keeps_its_last_good_row(world: World) -> None:
    (world.root / "notebook.toml").write_text(
        (world.root / "notebook.toml").read_text() + "[notebook]\nmax_file_bytes = 40_000_000\n"
    )
    world.write("pages/plan.md", "# Plan\n\nSmall.\n")
    world.write("pages/other.md", "# Other\n")
    assert world.run("sync").code == 0
    world.write("pages/plan.md", "# Plan\n\n" + "word " * 2_000_000)
    world.write("pages/other.md", "# Other\n\nMore.\n")
    done = world.run("sync", "--json")
    assert done.code == 1
    (failure,) = done.json["failed"]
    assert failure["path"] == "pages/plan.md"
    assert "MongoDB cannot hold it" in failure["error"]
    documents = world.whole()
    assert documents["pages/plan.md"]["content"] == "# Plan\n\nSmall.\n"
    assert "MongoDB cannot hold it" in documents["pages/plan.md"]["stale"]
    assert documents["pages/other.md"]["content"] == "# Other\n\nMore.\n"
    world.write("pages/plan.md", "# Plan\n\nSmall again.\n")
    assert world.run("sync").code == 0
    world.assert_whole()
