"""notebook.toml: every key has a default, and a wrong one is an error with path, line and what would be right."""

import tomllib
from pathlib import Path
from zoneinfo import ZoneInfo

import msgspec
import pytest

from notebook_sync.errors import ConfigError
from notebook_sync.files.state import Place
from notebook_sync.settings import (
    PromptFileTable,
    PromptTable,
    Settings,
    describe_settings,
    load_settings,
    mask_secrets,
    parse_settings,
    settings_that_reach_out,
)

TEMPLATE = Path(__file__).parents[1] / "runtime_templates/notebook.toml"


def test_without_a_file_every_setting_has_its_default(tmp_path: Path) -> None:
    assert load_settings(tmp_path, {}) == Settings()


def test_values_are_read_into_their_tables() -> None:
    settings = parse_settings(
        '[notebook]\ntimezone = "Europe/Lisbon"\nexclude = ["drafts/"]\n[sync]\nreconcile_seconds = 5\nsettle_ms = 0\n'
        '[[prompt.files]]\npath = "pages/glossary.md"\nsessions = ["owner"]\n'
    )
    assert settings.timezone == ZoneInfo("Europe/Lisbon")
    assert settings.notebook.exclude == ("drafts/",)
    assert (settings.sync.reconcile_seconds, settings.sync.settle_ms) == (5.0, 0)
    assert settings.prompt.files == (PromptFileTable(path="pages/glossary.md", sessions=("owner",)),)


def test_a_byte_order_mark_is_no_part_of_them(tmp_path: Path) -> None:
    (tmp_path / "notebook.toml").write_text('[notebook]\nid = "harbour"\n', encoding="utf-8-sig")
    settings = load_settings(tmp_path, {})
    assert settings.notebook.id == Place.find(tmp_path).notebook_id == "harbour"
    sources = {row["key"]: row["source"] for row in describe_settings(tmp_path, settings, {})}
    assert sources["notebook.id"] == "notebook.toml"


@pytest.mark.parametrize(
    ("text", "line", "said"),
    [
        ("[mirrors]\nurl = ''", 1, "unknown key 'mirrors'; did you mean mirror?"),
        ("[mirror]\nurll = ''", 2, "unknown key 'mirror.urll'; did you mean mirror.url?"),
        ("[[prompt.files]]\npath = 'a.md'\npriorty = 3", 3, "did you mean prompt.files.priority?"),
        ("max_tokens = 4000", 1, "unknown key 'max_tokens'; it belongs in [prompt] or [context]"),
        ("[sync]\n\n# no server\nurl = ''", 4, "unknown key 'sync.url'; it belongs in [mirror] or [refs]"),
        ("[prompt]\nmax_tokens = 'many'", 2, "prompt.max_tokens: expected a whole number, got text"),
        ("[prompt]\nmax_tokens = true", 2, "prompt.max_tokens: expected a whole number, got true or false"),
        ("[prompt]\nmax_tokens = -1", 2, "prompt.max_tokens: expected a whole number >= 1"),
        ("[sync]\nreconcile_seconds = 2031-05-06", 2, "sync.reconcile_seconds: expected a number, got date"),
        ("[notebook]\nexclude = 'drafts'", 2, "notebook.exclude: expected a list, got text"),
        ("[notebook]\nexclude = [1]", 2, "notebook.exclude: expected text, got a whole number"),
        ("notebook = 3", 1, "notebook: expected a table, got a whole number"),
        ("notebook.timezone = 3", 1, "notebook.timezone: expected text, got a whole number"),
        ("[[prompt.files]]\nheading = 'x'", 1, "prompt.files: missing key path"),
        ("[[prompt.files]]\npath = 'x.md'\nsessions = ['boss']", 3, "unknown value 'boss'; use owner or task or ext"),
        ("[git]\ncommit = 'always'", 2, "git.commit: unknown value 'always'; use tools or all or off"),
        (
            "[[prompt.files]]\npath = '/etc/passwd'",
            2,
            "names '/etc/passwd', which is not in the notebook; write a path",
        ),
        ("[[prompt.files]]\npath = 'a/../../b.md'", 2, "names 'a/../../b.md', which is not in the notebook"),
        ("[[prompt.files]]\npath = ''", 2, "names '', which is not in the notebook"),
        ("[prompt]\norder = ['../a.md']", 2, "prompt.order names '../a.md', which is not in the prompt; use some of"),
        (
            "[prompt]\nsystem_files = ['../a.md']",
            2,
            "prompt.system_files names '../a.md', which is not in",
        ),
        (
            "[prompt]\norder = ['reminders.md']",
            2,
            "not in the prompt; use some of: runtime/external-communications.md,",
        ),
        ("[prompt]\norder = ['a.md']\nsystem_files = ['a.md']", 2, "prompt.order names 'a.md', which is not in"),
        ("[[prompt.files]]\npath = 'a.md'\n[[prompt.files]]\npath = './a.md'", 0, "names 'a.md' more than once; keep"),
        ("[[prompt.files]]\npath = 'a.md'\nmax_tokens = 39", 3, "= 39 is too small to show anything; use at least 40"),
        ("[prompt]\nmax_tokens_per_file = 39", 2, "prompt.max_tokens_per_file = 39 is too small"),
        ("[prompt]\nmax_tokens = 499", 2, "prompt.max_tokens = 499 is too small to show anything; use at least 500"),
        ("[sync]\nbatch = 0", 2, "sync.batch: expected a whole number >= 1"),
        ("[mirror]\ntimeout_seconds = nan", 2, "mirror.timeout_seconds: expected a number >= 0.001"),
        ("[refs]\ntimeout_seconds = inf", 2, "refs.timeout_seconds: expected a number <= 1000000000.0"),
        (f"[sync]\nreconcile_seconds = 1{'0' * 400}", 2, "sync.reconcile_seconds: "),
        (f"[sync]\nsettle_ms = 1{'0' * 5000}", 0, "limit"),
        ("[git]\nauthor = 'Ines'", 2, "git.author: not a name and an address; write it like Ines <ines@ferry.example>"),
        ('[git]\nauthor = "Ines\\n<ines@ferry.example>"', 2, "git.author: not a name and an address"),
        ("[server]\nport = 65536", 2, "server.port: expected a whole number <= 65535"),
        ("[notebook]\ntimezone = 'Mars/Olympus'", 2, "notebook.timezone: unknown time zone; write it like Europe/Ber"),
        ("[notebook]\ntimezone = '../../etc/passwd'", 2, "notebook.timezone: unknown time zone"),
        ("[search]\nembeddings = 'https://me:hawser@x'", 2, "embeddings: unknown value; use wordllama, off or openai:"),
        ("[search]\nsecond_stage = 'onnx:'", 2, "search.second_stage: unknown value; use onnx:DIR or openai:MODEL"),
        ("[tier2]\nspecs = ['specs/', '!']", 2, "tier2.specs: Invalid git pattern: '!'; write patterns as in a .gitig"),
        ("[tier2]\nspecs = ['[z-a]']", 2, "tier2.specs: bad character range z-a"),
        ("[notebook]\nid = 'a'\nid = 'b'\n", 3, "Cannot overwrite a value"),
        ("[notebook", 0, "notebook.toml: "),
    ],
)
def test_a_wrong_setting_is_named_with_its_line_and_what_would_be_right(text: str, line: int, said: str) -> None:
    with pytest.raises(ConfigError) as raised:
        parse_settings(text)
    assert said in str(raised.value)
    assert str(raised.value).startswith(f"notebook.toml:{line}: " if line else "notebook.toml: ")
    assert "hawser" not in str(raised.value)
    assert raised.value.line == line


def test_a_path_of_the_prompt_has_one_spelling() -> None:
    text = "[prompt]\nsystem_files = ['./AGENTS.md', 'AGENTS.md']\n[[prompt.files]]\npath = 'pages//x/../plan.md'\n"
    prompt = parse_settings(text).prompt
    assert ([file.path for file in prompt.files], prompt.system_files) == (["pages/plan.md"], ("AGENTS.md",))


def test_the_smallest_prompt_that_shows_something_is_allowed() -> None:
    prompt = parse_settings("[prompt]\nmax_tokens_per_file = 40\nmax_tokens = 500\n").prompt
    assert (prompt.max_tokens_per_file, prompt.max_tokens) == (40, 500)


def test_variables_win_over_the_file_and_secrets_are_masked(tmp_path: Path) -> None:
    (tmp_path / "notebook.toml").write_text(
        '[mirror]\nurl = "mongodb://file/"\n[refs]\nurl = "redis://odile:hawser@file/"\n[llm]\nbase_url = "http://x?key=hawser"'
    )
    variables = {"MONGODB_URL": "mongodb://odile:hawser@harbour:27017/?password=hawser"}
    settings = load_settings(tmp_path, variables)
    assert (settings.mirror.url, settings.refs.url) == (variables["MONGODB_URL"], "redis://odile:hawser@file/")
    rows = {row["key"]: row for row in describe_settings(tmp_path, settings, variables)}
    assert "hawser" not in str(rows)
    assert [rows[key]["source"] for key in ("mirror.url", "refs.url", "sync.batch")] == [
        "MONGODB_URL",
        "notebook.toml",
        "default",
    ]
    assert settings_that_reach_out(settings) == ["mirror.url", "refs.url", "llm.base_url"]
    assert settings_that_reach_out(Settings()) == []


@pytest.mark.parametrize(
    "url", ["http://odile:hawser@[::1", "http://:hawser@harbour", "http://h/?hawser", "http://h/#hawser"]
)
def test_no_form_of_an_address_shows_its_secret(url: str) -> None:
    assert "hawser" not in mask_secrets(url)


def test_a_file_that_cannot_be_read_is_an_error_with_its_path(tmp_path: Path) -> None:
    path = tmp_path / "notebook.toml"
    path.write_bytes(b"\xff\xfe")
    with pytest.raises(ConfigError, match=r"notebook\.toml: not UTF-8 text \(byte 1\); save it as UTF-8$"):
        load_settings(tmp_path, {})
    path.unlink()
    path.mkdir()
    with pytest.raises(ConfigError, match=r"notebook\.toml: cannot be read: Is a directory$"):
        load_settings(tmp_path, {})


def test_the_template_shows_every_setting_with_its_default() -> None:
    lines = [
        line.removeprefix("# ").split("  #")[0] if line.startswith("# ") and ("=" in line or "[[" in line) else line
        for line in TEMPLATE.read_text().splitlines()
    ]
    shown = tomllib.loads("\n".join(lines))
    example = PromptFileTable(path="pages/glossary.md", heading="Glossary")
    defaults = Settings(prompt=PromptTable(files=(example,)))
    expected = msgspec.json.decode(msgspec.json.encode(defaults))
    expected["notebook"] |= {"id": "{{ id }}", "name": "{{ name }}"}
    assert shown == expected
