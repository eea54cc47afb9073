"""What a brief is made of, from real files: which memories it has, which it never has, and what its hash depends on."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from notebook_sync import Notebook
from notebook_sync.context.compiler import TaskBrief
from notebook_sync.errors import NotFound, NotPermitted, UnwritableFile, UsageError
from notebook_sync.sessions import Session
from notebook_sync.store.rows import Is
from notebook_sync.surfaces.cli.main import run
from tests.conftest import Copies
from tests.search.embedding_server import embedding_server
from tests.services.conftest import OWNER, SCRIBE, STRANGER, add_files, assert_raises, copied, write_files

SPEC = "---\ndomain: harbour\n---\n# Winter ferry\n\nThe ferry needs rope before the ice comes.\n"
SETTINGS = '[notebook]\ntimezone = "UTC"\n[search]\nembeddings = "off"\n'


def memory(title: str, text: str, **fields: Any) -> str:
    """A memory of the harbour, whose frontmatter is JSON."""
    return f"---\n{json.dumps({'domain': 'harbour', **fields})}\n---\n# {title}\n\n{text}\n".replace("---\n{", "---\n{")


ROPE, ICE, KNOT = "memories/decision/rope", "memories/problem/ice", "memories/pattern/knot"
DATA = "A" * 80
FILES = {
    "notebook.toml": SETTINGS,
    f"{ROPE}.md": memory(
        "Buy hemp rope",
        f"Hemp rope for the ferry.<!-- the safe is blue -->\n\n![x](data:image/png;base64,{DATA})",
        kind="decision",
        tags=["rope"],
        relations=[{"type": "solves", "to": ICE, "reasoning": "hemp # does not freeze"}],
    ),
    f"{ICE}.md": memory("Ice on the pier", "Rope freezes to the pier.", kind="problem"),
    f"{KNOT}.md": memory("Two half hitches", "Tie the ferry with rope.\n\n## Metadata\n\n- not ours", kind="pattern"),
    "memories/problem/fog.md": memory("Fog", "The ferry waits in fog.", kind="problem"),
    "memories/soup.md": memory("Soup", "Salt.", domain="kitchen"),
    "memories/strange.md": memory("Strange", "Rope for the ferry, says a stranger.", provenance="external"),
    "memories/archived.md": memory("Archived", "Rope for the old ferry.", status="archived"),
    "channels/scribe/global/rope.md": "# Secret\n\nThe ferry needs rope.\n",
    "pages/timetable.md": "---\nsummary: when the ferry goes\n---\n# - Timetable\n\nThe winter ferry.\n",
    "pages/stranger.md": "---\nprovenance: external\n---\n# Ferry\n\nThe winter ferry.\n",
}


@pytest.fixture
def notebook(copies: Copies, folder: Path) -> Iterator[Notebook]:
    with copied(copies, folder, FILES) as opened:
        yield opened


def compiled(notebook: Notebook, spec: str = SPEC, session: Session = SCRIBE, **options: Any) -> TaskBrief:
    return notebook.context.brief(spec, session, **options)


def used(found: TaskBrief) -> list[str]:
    return sorted(each.id for each in found.memories_used)


def sections(text: str) -> dict[str, str]:
    return {part.partition("\n")[0]: part for part in text.split("\n## ")[1:]}


def test_a_brief_has_what_helps_by_kind_and_nothing_that_is_withheld(notebook: Notebook) -> None:
    found = compiled(notebook)
    assert used(found) == [ROPE, KNOT, "memories/problem/fog", ICE]
    parts = sections(found.task_brief_md)
    assert "> Hemp rope for the ferry." in parts["Decisions"]
    assert f"- solves “Ice on the pier” (`{ICE}`): hemp # does not freeze" in parts["Decisions"]
    assert f"- is solved by “Buy hemp rope” (`{ROPE}`)" in parts["Known Problems"]
    assert "> ## Metadata" in parts["Patterns"]
    assert parts["Risks"].strip() == "Risks\n\n- No memory says what solves “Fog” (`memories/problem/fog`)."
    assert (
        parts["Related Notes"].strip() == "Related Notes\n\n- \\- Timetable (`pages/timetable.md`): when the ferry goes"
    )
    for withheld in ("safe", "base64", "stranger", "Archived", "Secret", "Salt"):
        assert withheld not in found.task_brief_md
    assert {each.id: each.contribution for each in found.memories_used}[ROPE] == "primary"
    assert found.degraded is None


def test_only_primary_memories_count_as_used_and_never_for_an_external_session(notebook: Notebook) -> None:
    found = compiled(notebook)
    primary = {each.id for each in found.memories_used if each.contribution == "primary"}

    def counts() -> dict[str, int]:
        rows = notebook.core.index.documents.tuples(("id", "access_count"), Is("collection", "=", "memories"))
        return {id: count for id, count in rows if count}

    assert counts() == dict.fromkeys(primary, 1)
    external = compiled(notebook, session=STRANGER)
    notebook.prompts.assemble(SCRIBE, task=SPEC)
    assert counts() == dict.fromkeys(primary, 1)
    assert "<external-text" in external.task_brief_md
    assert used(external) == used(found)


def test_the_hash_is_of_spec_options_and_files_alone(notebook: Notebook, folder: Path) -> None:
    before = compiled(notebook)
    made = notebook.context.compiler.compile(SPEC, SCRIBE)
    notebook.core.index.documents.update(Is("id", "=", ROPE), set={"score": 0.9}, inc={"access_count": 5})
    add_files(notebook, {"pages/other.md": "# Ferry\n\nNothing new.\n"})
    assert compiled(notebook).context_hash == before.context_hash == made.brief.context_hash
    assert before.context_hash.removeprefix("sha256:") not in made.stable
    assert before.task_brief_md.startswith(made.stable)
    assert len({compiled(notebook, **each).context_hash for each in ({}, {"top_k": 9}, {"exclude_tags": ["x"]})}) == 3
    assert compiled(notebook, SPEC + " ").context_hash != before.context_hash
    write_files(folder, {f"{ICE}.md": FILES[f"{ICE}.md"] + "Salt helps.\n"})
    # The index lacks the change, and the file counts.
    after = notebook.context.compiler.compile(SPEC, SCRIBE)
    assert "> Salt helps." in after.brief.task_brief_md
    assert after.brief.context_hash != before.context_hash
    assert {id for id in made.words if made.words[id] != after.words[id]} == {ICE}


def test_a_memory_that_is_gone_or_taken_over_meanwhile_is_left_out(notebook: Notebook, folder: Path) -> None:
    (folder / f"{ICE}.md").unlink()
    write_files(folder, {f"{KNOT}.md": FILES["memories/strange.md"]})
    (folder / "memories/problem/fog.md").write_bytes(b"---\ntitle: [\n---\n\xff")  # damaged: the last good row
    found = compiled(notebook)
    assert used(found) == [ROPE, "memories/problem/fog"]
    assert ICE not in found.task_brief_md


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"include_domains": ["Kitchen "]}, ["memories/soup"]),
        ({"include_domains": ["none"]}, []),
        ({"exclude_tags": ["#Rope"]}, [KNOT, "memories/problem/fog", ICE, "memories/soup"]),
        ({"top_k": 1}, [ROPE]),
    ],
)
def test_a_caller_narrows_the_brief(notebook: Notebook, options: dict[str, Any], expected: list[str]) -> None:
    found = compiled(notebook, f"{SPEC} Salt the soup. [[{ROPE}]]", **options)
    assert used(found) == expected
    assert "None found." in found.task_brief_md or expected
    if "exclude_tags" in options:
        assert "Buy hemp rope" not in found.task_brief_md
        assert f"solves “Ice on the pier” (`{ICE}`)." not in found.task_brief_md  # something does


def test_what_is_superseded_comes_last_and_is_a_risk(notebook: Notebook, folder: Path) -> None:
    relations = [{"type": "supersedes", "to": ROPE}, {"type": "contradicts", "to": KNOT, "reasoning": "a\nb"}]
    newer = memory("Buy steel wire", "Steel for the ferry, not rope.", kind="decision", relations=relations)
    add_files(notebook, {"memories/decision/wire.md": newer})
    found = compiled(notebook)
    risks = sections(found.task_brief_md)["Risks"]
    assert f"- “Buy steel wire” (`memories/decision/wire`) contradicts “Two half hitches” (`{KNOT}`): a b" in risks
    assert f"- “Buy hemp rope” (`{ROPE}`) is out of date: “Buy steel wire”" in risks
    assert found.memories_used[-1].id == ROPE
    assert found.memories_used[-1].contribution == "supporting"
    assert ROPE not in used(compiled(notebook, top_k=4))


def test_what_says_that_another_replaces_it_comes_last_and_is_a_risk_too(notebook: Notebook, folder: Path) -> None:
    wire = "memories/decision/wire"
    older = memory("Buy hemp rope", "Hemp rope for the ferry.", kind="decision", superseded_by=wire)
    newer = memory("Buy steel wire", "Steel for the ferry, not rope.", kind="decision")
    add_files(notebook, {f"{ROPE}.md": older, f"{wire}.md": newer})
    found = compiled(notebook)
    assert f"- “Buy hemp rope” (`{ROPE}`) is out of date: “Buy steel wire”" in sections(found.task_brief_md)["Risks"]
    assert (found.memories_used[-1].id, found.memories_used[-1].contribution) == (ROPE, "supporting")


def test_of_many_memories_names_labels_words_and_links_find_the_candidates(notebook: Notebook, folder: Path) -> None:
    write_files(folder, {f"memories/m{n:03}.md": memory(f"Gull {n}", "Gulls cry.", domain="birds") for n in range(40)})
    add_files(
        notebook,
        {
            "notebook.toml": SETTINGS + "[context]\nprefilter = 6\n",
            "memories/named.md": memory("Named", "Nothing.", domain="x"),
            "memories/tagged.md": memory("Tagged", "A ferry.", domain="x", tags=["winter-ferry"]),
            "memories/worded.md": memory("Worded", "Of hawsers and bollards.", domain="x"),
            "memories/linked.md": memory(
                "Linked", "Nothing.", domain="x", relations=[{"type": "causes", "to": "memories/worded"}]
            ),
        },
    )
    asked = "---\nrelated: memories/named\n---\n# Winter ferry\n\nHawsers, bollards. Bollards.\n"
    found = compiled(notebook, asked, explain=True)
    assert found.explain
    ways = {each["id"].rpartition("/")[2]: each["found_by"] for each in found.explain["candidates"]}
    assert ways["named"] == ["named"]
    assert "label" in ways["tagged"]
    assert "words" in ways["worded"]
    assert ways["linked"] == ["linked"]
    assert not any(name.startswith("m0") for name in ways)
    assert {f"memories/{name}" for name in ("named", "worded", "linked")} <= set(used(found))


def test_a_saved_task_is_not_related_to_itself(notebook: Notebook, folder: Path) -> None:
    task = "# Spring ferry\n\nHawsers for the spring ferry.\n"
    add_files(notebook, {"specs/spring.md": task, "pages/hawsers.md": "# Hawsers\n\nHawsers for the ferry.\n"})
    found = [each.path for each in compiled(notebook, task).related]
    assert "pages/hawsers.md" in found
    assert "specs/spring.md" not in found


def test_a_memory_in_the_prompt_is_withheld_from_whom_the_settings_withhold_it(
    notebook: Notebook, folder: Path
) -> None:
    table = f'[[prompt.files]]\npath = "{ROPE}.md"\nsessions = ["owner"]\n'
    write_files(folder, {"notebook.toml": SETTINGS + table})  # the index does not know it yet
    assert ROPE not in used(compiled(notebook))
    assert "hemp" not in compiled(notebook).task_brief_md.lower()
    assert ROPE in used(compiled(notebook, session=OWNER))


def test_of_a_huge_memory_only_the_beginning_is_cut(notebook: Notebook, folder: Path) -> None:
    add_files(notebook, {f"{KNOT}.md": memory("Two half hitches", "Tie the ferry with rope.\n\n" * 12_000)})
    found = compiled(notebook, max_tokens=2_000)
    assert KNOT in used(found)
    assert f"notebook_read {KNOT}.md]" in found.task_brief_md


@pytest.mark.parametrize(
    ("spec", "options", "message"),
    [
        (" \n", {}, "the task is empty"),
        ("x" * 300_000, {}, "the task has 300,000 bytes"),
        (SPEC, {"max_tokens": 63}, "max_tokens is 63"),
        (SPEC, {"max_tokens": 127, "session": STRANGER}, "max_tokens is 127"),
    ],
)
def test_wrong_limits_are_refused(notebook: Notebook, spec: str, options: dict[str, Any], message: str) -> None:
    assert_raises(UsageError, compiled, notebook, spec, **options, match=message)


@pytest.mark.parametrize(
    "spec", ["\ud800", "---\n", "---\ntags: {a: [1, null]}\nrelated: [[[x]]]\n---\n", "\0" * 9, "[[" * 99]
)
def test_any_text_is_a_spec(notebook: Notebook, spec: str) -> None:
    assert compiled(notebook, spec).token_count > 0


def test_the_command_reads_a_file_and_the_prompt_has_the_brief(
    notebook: Notebook, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_files(folder.parent, {"spec.md": SPEC})
    asked = ["-C", str(folder), "context", "brief", str(folder.parent / "spec.md"), "--session", "task", "--json"]
    assert run(asked) == 0
    answer = json.loads(capsys.readouterr().out)
    assert answer["task_brief_md"] == compiled(notebook).task_brief_md
    assert answer["context_hash"] == compiled(notebook).context_hash
    assert "> > Hemp rope for the ferry." in notebook.prompts.assemble(SCRIBE, task=SPEC).text
    assert "> # Winter ferry" in notebook.prompts.assemble(SCRIBE, task=SPEC, max_tokens=500).text
    assert "## Task Brief\n\n> Quarrel.\n" in notebook.prompts.assemble(SCRIBE, task="Quarrel.").text


def test_a_prompt_shows_the_task_where_no_brief_can_be_made_and_asks_no_server(folder: Path) -> None:
    with embedding_server() as server:
        settings = f'[search]\nembeddings = "openai:x"\nbase_url = "{server.url}"\n'
        with Notebook.open(write_files(folder, {**FILES, "notebook.toml": settings})) as opened:
            opened.core.engine.sync()
            assert "> > Hemp rope" in opened.prompts.assemble(SCRIBE, task=SPEC).text
            assert not server.asked
            found = compiled(opened)
            assert found.degraded
            assert "Hemp rope" in found.task_brief_md
            assert server.asked
            prompt = opened.prompts.assemble(SCRIBE, task="Buy rope. " * 30_000)
            assert "> Buy rope. Buy rope." in prompt.text
            assert "the task has 300,000 bytes" in prompt.problems[-1]


def test_figures_count_briefs_and_the_last_feedback(notebook: Notebook) -> None:
    context = notebook.context
    before = context.figures(SCRIBE)
    assert (before.compile.count, before.precision) == (0, None)
    brief = context.brief(SPEC, SCRIBE)
    for used_ids, useless in (([ROPE, ICE], []), ([ROPE], [ICE, KNOT])):
        context.feedback(brief.context_hash, SCRIBE, used=used_ids, useless=useless)
    after = context.figures()
    assert (after.compile.count, after.used, after.useless) == (1, 1, 2)
    assert after.compile.p95_ms
    with pytest.raises(UsageError, match="the brief has no memory 'memories/soup'"):
        context.feedback(brief.context_hash, SCRIBE, used=["memories/soup"])
    for name, session in ((brief.context_hash, Session.task("pilot")), ("sha256:0", SCRIBE)):
        assert_raises(NotFound, context.feedback, name, session)


def test_a_seed_is_what_everybody_may_read_by_domain(notebook: Notebook, folder: Path, tmp_path: Path) -> None:
    add_files(notebook, {"pages/pier.md": "---\ntags: [Harbour]\n---\n# Pier\n\nThree berths.<!-- safe -->\n"})
    names = notebook.context.seed(str(tmp_path / "seed")).results
    assert names == [f"01-harbour-{each}.md" for each in ("decisions", "lessons", "pages", "problems")] + [
        "02-kitchen-lessons.md"
    ]
    texts = {path.name: path.read_text() for path in (tmp_path / "seed").iterdir()}
    assert sorted(texts) == names
    assert "## Pier (`pages/pier`)\n\nThree berths." in texts["01-harbour-pages.md"]
    for withheld in ("safe", "base64", "stranger", "Archived", "Secret"):
        assert withheld not in "".join(texts.values())
    for place in (tmp_path / "seed", folder / "seed", folder):
        assert_raises(UsageError, notebook.context.seed, str(place))
    assert_raises(UnwritableFile, notebook.context.seed, str(tmp_path / "seed" / names[0] / "x"))
    assert_raises(NotPermitted, notebook.context.seed, str(tmp_path / "other"), SCRIBE)
