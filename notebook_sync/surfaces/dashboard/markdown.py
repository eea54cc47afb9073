"""A note's Markdown as markup for a page. Whatever it says, nothing in it runs or is loaded from elsewhere: HTML in it
is text, links lead to notes or by http(s) and mail, and pictures are files of the notebook."""

from __future__ import annotations

import posixpath
import re
from collections.abc import MutableMapping, Sequence
from functools import cache
from typing import Any, Final
from urllib.parse import quote, unquote

from markdown_it import MarkdownIt
from markdown_it.renderer import RendererHTML
from markdown_it.rules_core import StateCore
from markdown_it.rules_inline import StateInline
from markdown_it.token import Token
from markdown_it.utils import OptionsDict
from markupsafe import Markup

from prompt.outline import anchors_of

# Beyond this a text is shown as it is written: to render it takes longer than a reader waits.
LONGEST: Final = 200_000
# Each line may begin a block, which costs as much as a hundred characters of prose.
MOST_LINES: Final = 5_000
# Pictures that a browser shows as pictures only.
PICTURES: Final = {
    "avif": "image/avif",
    "gif": "image/gif",
    "jpeg": "image/jpeg",
    "jpg": "image/jpeg",
    "png": "image/png",
    "svg": "image/svg+xml",
    "webp": "image/webp",
}
# What the ids of headings begin with, so that none is that of a part of the page.
AT: Final = "at-"
# The form that the checkboxes of a note belong to.
BOXES: Final = "boxes"
# Of one paragraph, where the time grows with the square of its length, and of all paragraphs together.
_LONGEST_PARAGRAPH = 10_000
_MOST_STEPS = 20_000_000
# A mark of emphasis, code or a tag costs as many steps as so many characters that are looked through for a bracket.
_STEPS_OF_MARK = 700
# Of cells of tables: the parser fills rows up to the width of the heading.
_MOST_CELLS = 60_000
# Of characters in addresses and titles: a reference is defined once, and may be used in every word.
_MOST_IN_LINKS = 2 * LONGEST
# Deeper lists and quotes are not read, and a text that has them is shown as it is written.
_DEEPEST = 60
_ELSEWHERE = re.compile(r"https?://[^/\\]|mailto:", re.IGNORECASE)
_SCHEME = re.compile(r"[^/?#]*:|[/\\]{2}")
_WIKILINK = re.compile(r"\[\[([^\[\]|\n]+)(?:\|([^\[\]\n]*))?\]\]")
_CODE_WORD = re.compile(r"[\w.+#-]{1,40}")
_BOX = re.compile(r"\s*(?:[-*+]|\d+[.)])\s+\[[ xX]\]\s+(.+)")
_HIGHEST, _LOWEST = 2, 6
_Env = MutableMapping[str, Any]


def render(text: str, path: str = "", *, boxes: bool = False, title: str = "") -> Markup:
    """What `text` looks like. With the `path` of its note, links and pictures are found from there, and headings have
    ids. `boxes`: checkboxes are buttons of the form BOXES, each with the words of its line as `entry_match`.
    A first heading that is `title` is left out."""
    lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    widest = max(line.count("|") for line in lines)
    if len(text) > LONGEST or len(lines) > MOST_LINES or widest * len(lines) > _MOST_CELLS:
        return Markup("<pre>{}</pre>").format(text)
    env: _Env = {"path": path, "in_links": 0, "lines": lines if boxes else []}
    tokens = _parser().parse(text, env)
    if any(token.level >= _DEEPEST - 1 for token in tokens):
        return Markup("<pre>{}</pre>").format(text)
    if title and tokens[:1] and tokens[0].tag == "h1" and tokens[1].content == title:
        tokens = tokens[3:]
    _adapt(tokens, has_ids=bool(path))
    return Markup(_parser().renderer.render(tokens, _parser().options, env))  # noqa: S704 - what `_Escaping` escaped


def note_href(path: str, anchor: str = "") -> str:
    """The page of a note, by any name that leads to it."""
    return f"/note/{quote(path, errors='replace')}" + (f"#{AT}{quote(anchor, errors='replace')}" if anchor else "")


def href_of(link: str, path: str = "") -> str:
    """Where a link in the note at `path` leads; "" for one that is not followed."""
    if _ELSEWHERE.match(link):
        return link
    place, anchor = within(link, path), unquote(link.partition("#")[2])
    if place:
        return note_href(place, anchor)
    is_here = link.startswith("#") and anchor and path
    return f"#{AT}{quote(anchor, errors='replace')}" if is_here else ""


def within(link: str, path: str) -> str:
    """The path in the notebook that a link from the note at `path` names, "" for what is outside of it."""
    named = "" if _SCHEME.match(link) else unquote(link.partition("#")[0].partition("?")[0]).strip()
    if not named:
        return ""
    found = posixpath.normpath(posixpath.join(posixpath.dirname(path), named.replace("\\", "/")).lstrip("/") or ".")
    return "" if found.partition("/")[0] in {".", ".."} else found


class _Escaping(RendererHTML):
    """Writes no markup but what its own tokens mean, and no attribute that a note could name."""

    def link_open(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: _Env) -> str:
        link = str(tokens[idx].attrs.get("href", ""))
        is_too_much = env["in_links"] > _MOST_IN_LINKS
        href = "" if is_too_much else tokens[idx].meta.get("href") or href_of(link, env["path"])
        env["in_links"] += len(link) + len(href)
        if not href:
            return "<a>"
        rel = Markup("") if href.startswith(("/", "#")) else Markup(' rel="noopener noreferrer"')
        return Markup('<a href="{}"{}>').format(href, rel)

    def image(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: _Env) -> str:
        token = tokens[idx]
        source = "" if env["in_links"] > _MOST_IN_LINKS else str(token.attrs["src"])
        env["in_links"] += 2 * len(source)
        alt = self.renderInlineAsText(token.children, options, env).strip() or unquote(source)
        place = within(source, env["path"])
        if place.rpartition(".")[2].lower() in PICTURES:
            address = f"/file/{quote(place, errors='replace')}"
            return Markup('<img src="{}" alt="{}" loading="lazy">').format(address, alt)
        where = f" ({source})" if _ELSEWHERE.match(source) and alt != source else ""
        return Markup("<span>Picture: {}{}</span>").format(alt, where)

    def fence(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: _Env) -> str:
        word = _CODE_WORD.match(tokens[idx].info.strip())
        said = Markup(' class="language-{}"').format(word[0]) if word else Markup("")
        return Markup('<pre tabindex="0"><code{}>{}</code></pre>\n').format(said, tokens[idx].content)

    code_block = fence

    def list_item_open(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: _Env) -> str:
        token = tokens[idx]
        is_done = token.meta.get("checked")
        if is_done is None:
            return "<li>"
        sign, state = ("☑", "true") if is_done else ("☐", "false")
        found = _BOX.match(env["lines"][token.map[0]]) if env["lines"] and token.map else None
        if not found:
            said = "done" if is_done else "to do"
            return f'<li class="task"><span role="img" aria-label="{said}">{sign}</span> '
        return Markup(
            '<li class="task"><button class="box" form="{}" name="entry_match" value="{}" role="checkbox" '
            'aria-checked="{}" aria-label="{}">{}</button> '
        ).format(BOXES, found[1], state, found[1], sign)

    def table_open(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: _Env) -> str:
        return '<div class="wide" tabindex="0"><table>\n'

    def table_close(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: _Env) -> str:
        return "</table></div>\n"


@cache
def _parser() -> MarkdownIt:
    options = {"html": False, "tasklists": True, "maxNesting": _DEEPEST}
    parser = MarkdownIt("commonmark", options, renderer_cls=_Escaping)
    parser.enable(["table", "strikethrough"])
    parser.inline.ruler.before("link", "wikilink", _wikilink)
    parser.core.ruler.at("inline", _inline)
    parser.validateLink = _may_be_link  # type: ignore[method-assign]
    return parser


def _inline(state: StateCore) -> None:
    """As markdown-it's own rule, for all paragraphs but those that would take too long."""
    left = _MOST_STEPS
    for token in state.tokens:
        if token.type != "inline":
            continue
        marks = sum(map(token.content.count, "*_~`<&"))
        steps = len(token.content) * token.content.count("[") + _STEPS_OF_MARK * marks
        if len(token.content) > _LONGEST_PARAGRAPH or steps > left:
            token.children = [Token("text", "", 0, content=token.content)]
        else:
            left -= steps
            token.children = []
            state.md.inline.parse(token.content, state.md, state.env, token.children)


def _may_be_link(url: str) -> bool:
    """Whether an address is one at all; any other is shown as it is written."""
    return bool(_ELSEWHERE.match(url)) or not _SCHEME.match(url)


def _wikilink(state: StateInline, silent: bool) -> bool:
    match = _WIKILINK.match(state.src, state.pos) if state.src.startswith("[[", state.pos) else None
    place, _, anchor = match[1].partition("#") if match else ("", "", "")
    anchors = anchors_of([anchor.strip()]) if anchor.strip() else [""]
    href = note_href(place.strip(), anchors[0]) if place.strip() else f"#{AT}{quote(anchors[0])}" if anchors[0] else ""
    if not match or not href:
        return False
    if not silent:
        state.push("link_open", "a", 1).meta = {"href": href}
        state.push("text", "", 0).content = match[2] or match[1]
        state.push("link_close", "a", -1)
    state.pos = match.end()
    return True


def _adapt(tokens: Sequence[Token], *, has_ids: bool) -> None:
    """Let the highest headings follow the page's own, whatever they are written as, and give them their ids; one within
    a list or a quote has none. Cells lose their style, which the pages' policy forbids."""
    headings = [at for at, token in enumerate(tokens) if token.type == "heading_open"]
    lower = _HIGHEST - min((int(tokens[at].tag[1:]) for at in headings), default=_HIGHEST)
    for at, anchor in zip(headings, anchors_of([tokens[at + 1].content for at in headings]), strict=True):
        tokens[at].tag = tokens[at + 2].tag = f"h{min(int(tokens[at].tag[1:]) + lower, _LOWEST)}"
        tokens[at].attrs = {"id": f"{AT}{anchor}"} if has_ids and tokens[at].level == 0 else {}
    for token in tokens:
        if token.type in ("th_open", "td_open"):
            token.attrs = {"scope": "col"} if token.type == "th_open" else {}
