"""The prompt of a notebook: its files for each session, what a caller adds, and what it says when something fails."""

import subprocess
import sys
from pathlib import Path

import pytest

import runtime_templates
from notebook_sync import Notebook, Session
from notebook_sync.errors import ConfigError, NoAgentNamed, UsageError
from notebook_sync.model import RUNTIME_FILES
from notebook_sync.registry import as_json
from notebook_sync.services.assembling import assemble, files_of
from prompt import count_tokens
from tests.services.conftest import FILES, OWNER, PILOT, SCRIBE, STRANGER, add_files, assert_raises, write_files

ODILE = FILES[RUNTIME_FILES[0]].partition("(")[2].partition(")")[0]
ORDERS = "runtime/standing-orders.md"
OFF = '[search]\nembeddings = "off"\n'


def problems(notebook: Notebook, session: Session = OWNER) -> str:
    return "\n".join(notebook.prompts.prompt(session).problems)


def settings(notebook: Notebook, text: str) -> None:
    write_files(notebook.root, {"notebook.toml": text + OFF})


@pytest.mark.parametrize(
    ("kind", "limit", "directive"), [("task", 180, 100), ("owner", 220, 140), ("external", 180, 100)]
)
def test_a_new_notebook_costs_little(folder: Path, kind: str, limit: int, directive: int) -> None:
    templates = Path(runtime_templates.__file__).parent
    write_files(folder, {path: (templates / path.rpartition("/")[2]).read_text() for path in RUNTIME_FILES})
    with Notebook.open(write_files(folder, {"notebook.toml": ""})) as notebook:
        prompt = notebook.prompt(Session.named(kind))
    assert prompt.tokens <= limit
    assert count_tokens(prompt.text.partition("## External")[0]) <= directive
    assert ("notebook_edit" in prompt.text) == (kind == "owner")
    assert all(path in prompt.text for path in RUNTIME_FILES)
    assert "{{" not in prompt.text


def test_sessions_see_their_files_and_nothing_hidden(notebook: Notebook) -> None:
    owner, task, external = (notebook.prompt(session) for session in (OWNER, SCRIBE, STRANGER))
    assert ("Quay" in owner.text, "Quay" in task.text, "Quay" in external.text) == (True, True, False)
    assert "the safe" not in owner.text
    assert f"Today is {notebook.settings.local_now():%A, %Y-%m-%d}." in task.text
    (orders,) = (part for part in task.parts if part.path == ORDERS)
    assert (orders.digest, orders.expired, orders.tokens_raw) == ("", (), orders.tokens_whole)
    assert next(part for part in owner.parts if part.path == ORDERS).digest


def test_the_settings_shape_it_and_no_setting_shows_a_channel(notebook: Notebook) -> None:
    settings(
        notebook,
        '[prompt]\nsystem_files = ["channels/scribe/global/plan.md"]\n[[prompt.files]]\npath = "pages/ferry.md"\n'
        'heading = "Ferry"\nmax_tokens = 50\n[[prompt.files]]\npath = "facts/core.md"\n'
        'sessions = ["owner", "external"]\n[[prompt.files]]\npath = "Channels/pilot/global/berth.md"\n',
    )
    prompt = notebook.prompt(STRANGER)
    assert ("## Ferry" in prompt.text, "Buy rope" in prompt.text, "berth" in prompt.text) == (True, False, False)
    assert "Quay" not in prompt.text
    assert problems(notebook).count("belongs to an agent's channel") == 2
    caps = files_of(notebook.core).caps
    assert (caps.get("pages/ferry.md"), caps.get("pages/idea.md")) == (50, None)


def test_what_does_not_fit_is_said_and_a_tiny_total_gives_what_fits(notebook: Notebook) -> None:
    write_files(notebook.root, {ORDERS: "## Rules\n\n" + "- Answer within the hour\n" * 900})
    found = notebook.prompts.prompt(OWNER)
    assert found.problems == [problem for problem in found.problems if "tokens are left out" in problem]
    assert found.parts[2]["omitted"]
    small = notebook.prompts.prompt(OWNER, max_tokens=5)
    assert (small.tokens <= 5, small.parts, "too small" in small.problems[0]) == (True, [], True)
    assert as_json(small)["session"] == "owner"


def test_rules_and_reminders_that_cannot_be_read_are_problems(notebook: Notebook) -> None:
    write_files(
        notebook.root, {RUNTIME_FILES[0]: "## Permanent Rules\n- Ana: block\n", RUNTIME_FILES[1]: "# Today\n- x\n"}
    )
    assert f"{RUNTIME_FILES[0]}:2: is not a rule" in problems(notebook)
    assert f"{RUNTIME_FILES[1]}:2: has no checkbox" in problems(notebook)


def test_contents_that_files_are_taken_to_have(notebook: Notebook) -> None:
    prompt = assemble(notebook.core, OWNER, contents={ORDERS: b"- Only tea\n", "facts/core.md": None})
    assert ("Only tea" in prompt.text, "Quay" in prompt.text) == (True, False)
    assert "Never pay" in notebook.prompt(OWNER).text


def test_broken_settings_leave_the_last_good_ones(notebook: Notebook) -> None:
    settings(notebook, '[[prompt.files]]\npath = "pages/ferry.md"\nsessions = ["owner"]\n')
    notebook.prompt(OWNER)
    with Notebook.open(write_files(notebook.root, {"notebook.toml": "[prompt\n"})) as other:
        for opened in (notebook, other):
            prompt = opened.prompt(STRANGER)
            assert "Three crowns" not in prompt.text
            assert any("notebook.toml:1" in each and "last good settings" in each for each in prompt.problems)
            assert opened.prompts.rules(ODILE).rule is not None


def test_without_good_settings_nothing_is_guessed(folder: Path) -> None:
    write_files(folder, {"notebook.toml": "[prompt\n", ORDERS: "- x\n"})
    with Notebook.open(folder) as notebook, pytest.raises(ConfigError, match=r"notebook\.toml:1"):
        notebook.prompt(OWNER)
    write_files(folder, {"notebook.toml": '[prompt]\nencoding = "nothing"\n'})
    with Notebook.open(folder) as notebook, pytest.raises(ConfigError, match="cl100k_base"):
        notebook.prompt(OWNER)


def test_files_answer_without_a_place_for_state(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NOTEBOOK_STATE_DIR", "/dev/null/state")
    with Notebook.open(root) as notebook:
        assert "Never pay" in notebook.prompt(SCRIBE).text
        assert notebook.prompts.rules(ODILE).rule is not None
        assert notebook.prompts.reminders().results
        assert notebook.prompts.explain("Never pay").results[0].in_prompt
        assert [one.path for one in notebook.prompts.check().results] == ["pages/index.md"]
        added = notebook.prompts.prompt(SCRIBE, include=["refs", "facts"])
        assert any("refs: left out" in problem for problem in added.problems)


def test_recent_notes_facts_own_notes_and_the_task_come_last(notebook: Notebook) -> None:
    add_files(
        notebook,
        {
            "facts/notes.md": "## Key Topics\n\n- Fares rose <!-- importance: 0.9 -->\n- Rope <!-- why -->\n",
            "pages/foreign.md": "---\nprovenance: external\n---\n# Obey me\n",
            "channels/scribe/global/mail.md": "---\nprovenance: external\n---\nDo as I say\n",
        },
    )
    given = {"include": ["refs", "facts", "notes"], "task": "Write the timetable"}
    prompt = notebook.prompts.prompt(SCRIBE, **given)
    plain = notebook.prompt(SCRIBE)
    assert prompt.revision == plain.revision
    assert "- Ferry (`pages/ferry`, draft): The ferry needs rope." in prompt.text
    assert "- Fares rose\n> - Rope" in prompt.text
    assert "Buy rope" in prompt.text
    assert ("Standing Orders (`" in prompt.text, "berth" in prompt.text) == (False, False)
    for title in ("Obey me", "Do as I say"):
        fence, before = prompt.text.partition(title)[0].rpartition("<external-text id=")[1:]
        assert fence
        assert "</external-text" not in before
    assert prompt.text.rstrip().endswith("> Write the timetable")
    external = notebook.prompts.prompt(STRANGER, **given)
    assert "Buy rope" not in external.text
    assert "the task of an external session" in external.text
    assert any("reads no channel" in problem for problem in external.problems)


def test_a_private_note_that_the_settings_withhold_is_not_among_the_agents_own(notebook: Notebook) -> None:
    shown = notebook.prompt(SCRIBE, include=["notes"])
    hidden = '[[prompt.files]]\npath = "channels/scribe/global/plan.md"\nsessions = ["owner"]\n'
    write_files(notebook.root, {"notebook.toml": f'[search]\nembeddings = "off"\n{hidden}'})
    assert ("Buy rope" in shown.text, "Buy rope" in notebook.prompt(SCRIBE, include=["notes"]).text) == (True, False)


def test_what_cannot_be_included_or_explained_is_an_error(notebook: Notebook) -> None:
    assert_raises(UsageError, notebook.prompts.explain, " \n")
    assert_raises(UsageError, notebook.prompts.assemble, SCRIBE, include=("all",), match="there is no part 'all'")
    assert_raises(NoAgentNamed, notebook.prompts.assemble, OWNER, include=("notes",))


def test_explain_tells_a_session_what_it_may_see(notebook: Notebook) -> None:
    plan = "channels/scribe/global/plan.md"
    for text, session, expected in (
        ("never  PAY", OWNER, [(ORDERS, 5, True, "")]),
        ("never pay", SCRIBE, [(ORDERS, 5, True, "")]),
        ("the safe is blue", OWNER, [(ORDERS, 6, False, "comment")]),
        ("the safe is blue", SCRIBE, []),
        ("called Quay", STRANGER, []),
        ("Three crowns", STRANGER, [("pages/ferry.md", 7, False, "not a prompt file")]),
        ("Buy rope", SCRIBE, [(plan, 6, False, "not a prompt file")]),
        ("Buy rope", PILOT, []),
        ("Buy rope", STRANGER, []),
    ):
        found = notebook.prompts.explain(text, session).results
        assert [(one.path, one.line, one.in_prompt, one.reason) for one in found] == expected


def test_a_prompt_loads_no_vocabulary_twice_and_no_database(notebook: Notebook) -> None:
    notebook.prompt(SCRIBE)
    code = (
        "import sys; from notebook_sync import Notebook, Session; "
        "Notebook.open(sys.argv[1]).prompts.prompt(Session.task('scribe')); "
        "print([name for name in ('tiktoken', 'numpy', 'pymongo', 'redis', 'jinja2', 'watchfiles', 'sqlite3') "
        "if name in sys.modules])"
    )
    run = subprocess.run([sys.executable, "-c", code, notebook.root], capture_output=True, text=True, check=False)
    assert (run.stdout, run.stderr) == ("[]\n", "")
