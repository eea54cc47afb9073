"""notebook.toml: every key has a default, a wrong one names the file, the key and what would be right."""

from __future__ import annotations

import tomllib
from dataclasses import fields, replace
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest

from notebook_sync import config
from notebook_sync.errors import ConfigError
from notebook_sync.settings import PromptFile, Settings


def test_a_folder_without_settings_has_the_defaults(tmp_path: Path) -> None:
    assert config.load(tmp_path, {}) == Settings()


def test_values_are_read_into_their_tables() -> None:
    settings = config.parse(
        """
        [notebook]
        timezone = "Europe/Lisbon"
        exclude = ["drafts/", "*.tmp.md"]
        [sync]
        reconcile_seconds = 5
        [[prompt.files]]
        path = "pages/glossary.md"
        sessions = ["owner"]
        """,
        "notebook.toml",
    )
    assert settings.timezone == ZoneInfo("Europe/Lisbon")
    assert settings.notebook.exclude == ("drafts/", "*.tmp.md")
    assert settings.sync.reconcile_seconds == 5.0
    assert settings.prompt.files == (PromptFile("pages/glossary.md", sessions=("owner",)),)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("[mirrors]\nurl = ''", "unknown key 'mirrors'; did you mean 'mirror'?"),
        ("[mirror]\nurll = ''", "unknown key 'mirror.urll'; did you mean 'mirror.url'?"),
        ("[prompt]\nmax_tokens = 'many'", "prompt.max_tokens must be a whole number, not text"),
        ("[sync]\nreconcile_seconds = 2031-05-06", "sync.reconcile_seconds must be a number, not a date or a time"),
        ("max_tokens = 4000", "unknown key 'max_tokens'; it belongs below [prompt]"),
        ("[sync]\nurl = ''", "unknown key 'sync.url'; it belongs below [mirror] or [refs]"),
        ("[prompt]\nmax_tokens = true", "prompt.max_tokens must be a whole number, not true or false"),
        ("[prompt]\nmax_tokens = -1", "prompt.max_tokens must not be negative"),
        ("[notebook]\nexclude = 'drafts'", "notebook.exclude must be a list"),
        ("[notebook]\nexclude = [1]", "notebook.exclude must be text, not a whole number"),
        ("[[prompt.files]]\nheading = 'x'", "'prompt.files.path' is missing"),
        ("[[prompt.files]]\npath = 'x.md'\nsessions = ['boss']", "knows owner, task, external, not 'boss'"),
        ("[[prompt.files]]\npath = '/etc/passwd'", "[prompt] names '/etc/passwd', which is not in the notebook"),
        ("[[prompt.files]]\npath = 'a/../../b.md'", "[prompt] names 'a/../../b.md', which is not in the notebook"),
        ("[[prompt.files]]\npath = ''", "[prompt] names '', which is not in the notebook"),
        ("[prompt]\norder = ['../a.md']", "[prompt] names '../a.md', which is not in the notebook"),
        (
            "[prompt]\norder = ['reminders.md']\n[[prompt.files]]\npath = 'a.md'",
            "prompt.order knows runtime/external-communications.md, runtime/reminders.md, runtime/standing-orders.md, "
            "facts/core.md, a.md, not 'reminders.md'",
        ),
        ("[prompt]\norder = ['a.md']\nsystem_files = ['a.md']", "not 'a.md'"),
        ("[[prompt.files]]\npath = 'a.md'\n[[prompt.files]]\npath = './a.md'", "has 'a.md' more than once"),
        (
            "[[prompt.files]]\npath = 'a.md'\nmax_tokens = 39",
            "of 'a.md' = 39 is too small to show anything; it must be",
        ),
        ("[prompt]\nmax_tokens_per_file = 39", "prompt.max_tokens_per_file = 39 is too small to show anything"),
        (
            "[prompt]\nmax_tokens = 499",
            "prompt.max_tokens = 499 is too small to show anything; it must be at least 500",
        ),
        ("[sync]\nbatch = 0", "sync.batch must be at least 1"),
        ("[mirror]\ntimeout_seconds = nan", "mirror.timeout_seconds must be from 0.001 to 1,000,000,000"),
        ("[refs]\ntimeout_seconds = inf", "refs.timeout_seconds must be from 0.001 to 1,000,000,000"),
        ("[mirror]\ntimeout_seconds = 0", "mirror.timeout_seconds must be from 0.001 to 1,000,000,000"),
        ("[sync]\nreconcile_seconds = 0.0", "sync.reconcile_seconds must be from 0.001 to 1,000,000,000"),
        (f"[sync]\nreconcile_seconds = 1{'0' * 400}", "sync.reconcile_seconds must be from 0.001 to 1,000,000,000"),
        (f"[sync]\nsettle_ms = 1{'0' * 400}", "sync.settle_ms must be at most 1,000,000,000"),
        (f"[sync]\nsettle_ms = 1{'0' * 5000}", "notebook.toml: "),
        ("[git]\ncommit = 'always'", "git.commit knows tools, all, off, not 'always'"),
        ("[git]\nauthor = 'Ines'", "git.author = 'Ines'; write it like Ines <ines@ferry.example>"),
        ('[git]\nauthor = "Ines\\n<ines@ferry.example>"', "git.author = "),
        ("[server]\nport = 65536", "server.port must be at most 65,535"),
        ("notebook = 3", "[notebook] must be a table"),
        ("[notebook]\ntimezone = 'Mars/Olympus'", "notebook.timezone = 'Mars/Olympus' is not known"),
        ("[notebook]\ntimezone = '../../etc/passwd'", "is not known"),
        ("[notebook", "notebook.toml: "),
    ],
)
def test_a_wrong_setting_names_file_key_and_remedy(text: str, told: str) -> None:
    with pytest.raises(ConfigError) as raised:
        config.parse(text, "notebook.toml")
    assert told in str(raised.value)
    assert "notebook.toml" in str(raised.value)


def test_a_path_of_the_prompt_has_one_spelling() -> None:
    text = "[prompt]\nsystem_files = ['./AGENTS.md', 'AGENTS.md']\n[[prompt.files]]\npath = 'pages//x/../plan.md'\n"
    prompt = config.parse(text, "notebook.toml").prompt
    assert [file.path for file in prompt.files] == ["pages/plan.md"]
    assert prompt.system_files == ("AGENTS.md",)


@pytest.mark.parametrize(("cap", "total"), [(40, 500), (2000, 16000)])
def test_the_smallest_prompt_that_shows_something_is_allowed(cap: int, total: int) -> None:
    text = f"[prompt]\nmax_tokens_per_file = {cap}\nmax_tokens = {total}\n"
    prompt = config.parse(f"{text}[[prompt.files]]\npath = 'a.md'\nmax_tokens = {cap}\n", "notebook.toml").prompt
    assert (prompt.max_tokens_per_file, prompt.max_tokens, prompt.files[0].max_tokens) == (cap, total, cap)


def test_files_need_no_time_to_settle() -> None:
    assert config.parse("[sync]\nsettle_ms = 0", "notebook.toml").sync.settle_ms == 0


def test_the_environment_wins_over_the_file(tmp_path: Path) -> None:
    (tmp_path / "notebook.toml").write_text('[mirror]\nurl = "mongodb://file/"\n[refs]\nurl = "redis://file/"\n')
    settings = config.load(tmp_path, {"MONGODB_URL": "mongodb://environment/"})
    assert (settings.mirror.url, settings.refs.url) == ("mongodb://environment/", "redis://file/")


def test_bytes_that_are_no_text_are_an_error_with_the_path(tmp_path: Path) -> None:
    (tmp_path / "notebook.toml").write_bytes(b"\xff\xfe")
    with pytest.raises(ConfigError, match=r"notebook\.toml: not UTF-8 text \(byte 1\); save it as UTF-8$"):
        config.load(tmp_path, {})


def test_a_folder_in_place_of_the_settings_is_told_in_words(tmp_path: Path) -> None:
    (tmp_path / "notebook.toml").mkdir()
    with pytest.raises(ConfigError, match=r"notebook\.toml: Is a directory$"):
        config.load(tmp_path, {})


def test_the_template_shows_every_setting_with_its_default() -> None:
    template = (Path(__file__).parents[1] / "runtime_templates" / "notebook.toml").read_text()
    uncommented = "\n".join(
        line.removeprefix("# ").split("  #")[0] if line.startswith("# ") and ("=" in line or "[[" in line) else line
        for line in template.splitlines()
    )
    settings = config.parse(uncommented, "notebook.toml")
    defaults = Settings()
    example = (PromptFile("pages/glossary.md", "Glossary"),)
    assert settings == replace(defaults, source="notebook.toml", prompt=replace(defaults.prompt, files=example))
    shown = tomllib.loads(uncommented)
    tables = [one.name for one in fields(Settings) if one.name != "source"]
    assert {name: list(shown.get(name, ())) for name in tables} == {
        name: [one.name for one in fields(getattr(defaults, name))] for name in tables
    }


@pytest.mark.parametrize("setting", ["mirror.url", "refs.url", "search.base_url", "llm.base_url"])
def test_an_address_is_shown_without_what_is_secret_in_it(setting: str) -> None:
    table, key = setting.split(".")
    settings = config.parse(f'[{table}]\n{key} = "http://odile:rope@harbour/v1"', "notebook.toml")
    assert config.shown(settings)[table][key] == "http://***@harbour/v1"
