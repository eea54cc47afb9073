"""A notebook in which everything that a page shows is written by somebody who wants a script to run, or to be told by a
request that it was read."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from notebook_sync import Notebook, Session

ELSEWHERE: Final = "outside.example"
# What is shown as an element of the page, and not as text, has this id.
MARK: Final = "planted"
_SCRIPTS: Final = (
    f"<script id={MARK}>alert(1)</script>",
    f"<img id={MARK} src=x onerror=alert(1)>",
    f"<IMG ID={MARK} SRC=https://{ELSEWHERE}/a.png>",
    f'"><svg id={MARK} onload=alert(1)>',
    f"'><svg/id={MARK}/onload=alert`1`>",
    f'" autofocus onfocus=alert(1) id={MARK} x="',
    f"' autofocus onfocus=alert(1) id={MARK} x='",
    f"<svg id={MARK}><script>alert(1)</script></svg>",
    f"<math id={MARK}><mtext><table><mglyph><style><img src=x onerror=alert(1)></style></mglyph></table></math>",
    f"<iframe id={MARK} src=javascript:alert(1)></iframe>",
    f"<iframe id={MARK} srcdoc='<script>alert(1)</script>'></iframe>",
    f"<object id={MARK} data=data:text/html,<script>alert(1)</script>></object>",
    f"<embed id={MARK} src=//{ELSEWHERE}/a.swf>",
    f"<base id={MARK} href=https://{ELSEWHERE}/>",
    f"<link id={MARK} rel=stylesheet href=https://{ELSEWHERE}/a.css>",
    f"<style id={MARK}>@import 'https://{ELSEWHERE}/b.css';</style>",
    f"<p id={MARK} style='background: url(https://{ELSEWHERE}/b.png)'>",
    f"<meta id={MARK} http-equiv=refresh content='0;url=https://{ELSEWHERE}/'>",
    f"<form id={MARK} action=https://{ELSEWHERE}/><button>Log in</button></form>",
    f"<details id={MARK} open ontoggle=alert(1)>",
    f"<video id={MARK} autoplay onplay=alert(1) src=https://{ELSEWHERE}/a.mp4></video>",
    f"<audio id={MARK} src=https://{ELSEWHERE}/a.mp3 onerror=alert(1)></audio>",
    f"<body id={MARK} onload=alert(1)>",
    f"<noscript><p title='</noscript><img id={MARK} src=x onerror=alert(1)>'>",
    f"<template id={MARK}><script>alert(1)</script></template>",
    f"<textarea></textarea><img id={MARK} src=x onerror=alert(1)>",
    f"</textarea><img id={MARK} src=x onerror=alert(1)>",
    f"</title><img id={MARK} src=x onerror=alert(1)>",
    f"</script><script id={MARK}>alert(1)</script>",
    f"--><img id={MARK} src=x onerror=alert(1)>",
    f"]]><img id={MARK} src=x onerror=alert(1)>",
    f"<!--><img id={MARK} src=x onerror=alert(1)>-->",
    f"<scr<script>ipt id={MARK}>alert(1)</scr</script>ipt>",
    f"\uff1cscript id={MARK}\uff1ealert(1)\uff1c/script\uff1e",
    f"<a id={MARK} href=javascript:alert(1)>read on</a>",
    "&lt;script&gt;alert(1)&lt;/script&gt;",
    "&#60;script&#62;alert(1)&#60;/script&#62;",
    "{{7*7}} {% for x in (1).__class__.__mro__ %}{{x}}{% endfor %}",
)
_ADDRESSES: Final = (
    "javascript:alert(1)",
    "JaVaScRiPt:alert(1)",
    "java&#9;script:alert(1)",
    "&#106;avascript:alert(1)",
    "\u0001javascript:alert(1)",
    "javascript&colon;alert(1)",
    "vbscript:msgbox(1)",
    "data:text/html,<script>alert(1)</script>",
    "data:image/svg+xml,<svg/onload=alert(1)>",
    "file:///etc/hostname",
    "blob:null/1",
    f"//{ELSEWHERE}/a.png",
    f"https://{ELSEWHERE}/a.png",
    f"https:/{ELSEWHERE}/a.png",
    f"\\\\{ELSEWHERE}\\a.png",
    f"http://{ELSEWHERE}/?{{{{7*7}}}}",
    "/logout",
    "../../../login?next=//outside.example",
    '" onmouseover="alert(1)',
)
# As a name of a file may be: of all of these, none has a slash in it.
NAMES: Final = (f"<img id={MARK} src=x onerror=alert(1)>", '" onfocus=alert(1) autofocus x="', "'-alert(1)-'")


def make(root: Path, others: Iterable[str] = ()) -> None:
    """Make it at `root`; `others` are further texts for its pages."""
    scripts = [*_SCRIPTS, *others]
    Notebook.init(root, git=True)
    for path, text in {**_pages(scripts), **_rules(), **_memories()}.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text, encoding="utf-8")
    (root / f"pages/{NAMES[0]}-unreadable.md").write_bytes(b"\xff\xfe\x00")
    agent = Session.task("herald")
    with Notebook.open(root) as notebook:
        notebook.sync()
        for each in _SCRIPTS[:8]:
            notebook.stream.log(each, agent)
            notebook.channels.write(f"# {each}\n\n{each}", agent, topic="said", tags=["said"], metadata={"said": each})
            notebook.stream.checkpoint(each, Session.owner())
        notebook.sync()


def _pages(scripts: list[str]) -> dict[str, str]:
    linked = "\n\n".join(
        f"[{each}]({each}) ![{each}]({each}) <{each}> [[{each}]] [[{each}|said]] {each}\n\n[one]: {each}\n\n[one]"
        for each in _ADDRESSES
    )
    told = "\n\n".join(f"{each}\n\n## {each}\n\n- {each}\n\n| {each} |\n|---|\n| {each} |" for each in scripts)
    code = "\n\n".join(f"```{each}\n{each}\n```\n\n`{each}`" for each in _SCRIPTS if "`" not in each)
    named = {f"pages/{name}.md": f"# {name}\n\n{name}\n" for name in NAMES}
    headed = {
        f"pages/headed-{number}.md": "---\n"
        + "".join(f"{key}: {json.dumps(each)}\n" for key in ("title", "summary", "created_by", "status", each))
        + f"tags: {json.dumps([each])}\nprovenance: external\n---\n{each}\n"
        for number, each in enumerate(_SCRIPTS[:6])
    }
    snippet = f"---\nlanguage: {json.dumps(_SCRIPTS[0])}\n---\n# Snippet\n\n```{_SCRIPTS[0]}\n{_SCRIPTS[0]}\n```\n"
    research = f"---\nsource_url: {_ADDRESSES[0]}\nkey_findings: {json.dumps(list(_SCRIPTS[:5]))}\n---\n# Research\n"
    return {
        "pages/said.md": told,
        "pages/linked.md": linked,
        "pages/code.md": code,
        "code_snippets/said.md": snippet,
        "research_notes/said.md": research,
        "facts/notes.md": "## Said\n\n" + "".join(f"- {each}\n" for each in _SCRIPTS),
        "facts/core.md": "".join(f"## {each}\n\n- {each}\n\n" for each in _SCRIPTS[:6]),
        **named,
        **headed,
    }


def _rules() -> dict[str, str]:
    rules = "".join(f"- **{each}** ({each}): {each} [until 2199-12-31]\n- {each}\n" for each in _SCRIPTS)
    reminders = "".join(f"- [ ] {each} [due: 2026-01-01 09:00]\n" for each in _SCRIPTS)
    orders = "".join(f"## {each}\n<!-- pin -->\n\n- {each}\n\n" for each in _SCRIPTS)
    rules = f"## Permanent Rules\n\n{rules}\n## Channel-Specific\n\n### {_SCRIPTS[1]}\n"
    return {
        "runtime/external-communications.md": rules,
        "runtime/reminders.md": f"## Today\n\n{reminders}",
        "runtime/standing-orders.md": orders,
        "notebook.toml": f"[notebook]\nname = {json.dumps(_SCRIPTS[1])}\n",
    }


def _memories() -> dict[str, str]:
    made = {}
    for number, each in enumerate(_SCRIPTS[:8]):
        said = json.dumps(each)
        made[f"memories/decision/2026-02-1{number}-said.md"] = (
            f"---\nid: m{number}\ntitle: {said}\ndomain: {said}\nagent: {said}\ntags: [{said}]\n"
            f"relations:\n  - {{type: causes, to: m{(number + 1) % 8}, reasoning: {said}}}\n---\n"
            f"# {each}\n\n## Context\n\n{each}\n\n## Reasoning\n\n{each}\n\n## Outcome\n\n{each}\n"
        )
    return made
