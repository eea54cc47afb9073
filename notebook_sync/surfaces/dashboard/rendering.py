"""A note's Markdown as markup for a page. Whatever it says, nothing in it runs, is loaded, or takes the place of a part
of the page: markup in it is shown as it is written, pictures are named, and links lead to notes or by http(s) and mail.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Mapping, MutableMapping, Sequence
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

from prompt.outline import Outline, Section, anchors_of

# Beyond this a text is shown as it is written: to render it takes longer than a reader waits.
LONGEST: Final = 200_000
# Each line may begin a block, which costs as much as a hundred characters of prose.
MOST_LINES: Final = 5_000
# Of one paragraph, where that grows with the square of its length.
_LONGEST_PARAGRAPH: Final = 10_000
# Of all paragraphs together: each bracket that opens is looked for the end of as far as its paragraph goes.
_MOST_STEPS: Final = 100_000_000
# Of characters in addresses and titles: a reference is defined once, and written wherever it is used.
_MOST_IN_LINKS: Final = 2 * LONGEST
# Deeper lists and quotes the parser leaves out.
_DEEPEST: Final = 60
# What the ids of headings begin with, so that none is that of a part of the page.
AT: Final = "at-"
NONE_BROKEN: Final[Mapping[str, str]] = {}
_NOTES: Final = "/notes/"
_ELSEWHERE = re.compile(r"https?://[^/\\]|mailto:", re.IGNORECASE)
# [[target]] and [[target|shown]].
_WIKILINK = re.compile(r"\[\[([^\[\]|\n]+)(?:\|([^\[\]\n]*))?\]\]")
_SCHEME = re.compile(r"[^/?#]*:|[/\\]{2}")
_CODE_WORD = re.compile(r"[\w.+#-]{1,40}")
_DEEPEST_HEADING: Final = 6
_Env = MutableMapping[str, Any]


def rendered(text: str, path: str = "", *, title: str = "", broken: Mapping[str, str] = NONE_BROKEN) -> Markup:
    """What `text` looks like. With the `path` of the note that it is of, links lead where they do from there, and its
    headings can be led to, by `AT` and their anchor; without one, several texts may stand in a page. A first heading
    that is `title` is left out. The others stand below the one of the page. `broken` are links that lead nowhere, each
    with the reason: they are told from the others by words."""
    if len(text) > LONGEST or text.count("\n") > MOST_LINES:
        return Markup("<pre>{}</pre>").format(text)
    env: _Env = {"path": path, "broken": broken, "links": [], "lower": 1, "in_links": 0}
    tokens = _parser().parse(f"{text}\n", env)  # it reads one character too far where a comment is open at the end
    if any(token.level >= _DEEPEST - 1 for token in tokens):
        return Markup("<pre>{}</pre>").format(text)
    sections = {section.heading.first: section for section in Outline(text).sections if section.heading}
    if title and (at := _place_of_title(tokens, title, sections)) is not None:
        tokens[at : at + 3] = []
        env["lower"] = 0
    if path:
        _give_anchors(tokens, sections)
    return Markup(_parser().renderer.render(tokens, _parser().options, env))  # noqa: S704 - what `_Escaping` escaped


def href_of(link: str, path: str = "") -> str:
    """The address of a link in the note at `path`; "" for one that is not followed. Pure."""
    if _ELSEWHERE.match(link):
        return link
    if _SCHEME.match(link):
        return ""
    place, anchor = _named(link), unquote(link.partition("#")[2])
    if not place:
        return f"#{AT}{_quoted(anchor)}" if anchor and path else ""
    return _note(posixpath.join(posixpath.dirname(path), place), anchor)


def _named(link: str) -> str:
    """The file that a link names, as `Note.links` has it; "" for none."""
    return "" if _SCHEME.match(link) else unquote(link.partition("#")[0].partition("?")[0]).strip()


def _note(place: str, anchor: str) -> str:
    """The page of a note, found by whatever it is called; "" for what is outside."""
    found = posixpath.normpath(place.replace("\\", "/").lstrip("/") or ".")
    if found.partition("/")[0] in {".", ".."}:
        return ""
    return _NOTES + _quoted(found) + (f"#{AT}{_quoted(anchor)}" if anchor else "")


def _quoted(text: str) -> str:
    return quote(text, errors="replace")


class _Escaping(RendererHTML):
    """Writes no markup but what its own tokens mean, and no attribute that a note could name."""

    def html_block(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: _Env) -> str:
        return Markup('<pre class="dim">{}</pre>\n').format(tokens[idx].content.strip("\n"))

    def html_inline(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: _Env) -> str:
        return Markup('<span class="dim">{}</span>').format(tokens[idx].content)

    def link_open(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: _Env) -> str:
        link, title = str(tokens[idx].attrs.get("href", "")), tokens[idx].attrs.get("title", "")
        if _are_too_many(env):  # the address is not looked at: it may be long, and stand here as often as a note can
            env["links"].append("")
            return "<a>"
        env["links"].append(env["broken"].get(tokens[idx].meta.get("named") or _named(link), ""))
        href = tokens[idx].meta.get("href") or href_of(link, env["path"])
        env["in_links"] += max(len(link), len(href)) + len(str(title))
        shown = Markup(' title="{}"').format(title) if title else ""
        if not href:  # an anchor that leads nowhere is closed as any other
            return Markup("<a{}>").format(shown)
        rel = Markup("") if href.startswith(("/", "#")) else Markup(' rel="noopener noreferrer"')
        return Markup('<a href="{}"{}{}>').format(href, rel, shown)

    def link_close(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: _Env) -> str:
        why = env["links"].pop()
        env["in_links"] += len(why)
        return Markup('</a> <span class="badge bad" title="{}">broken link</span>').format(why) if why else "</a>"

    def image(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: _Env) -> str:
        token = tokens[idx]
        source = "" if _are_too_many(env) else str(token.attrs["src"])
        env["in_links"] += 2 * len(source)  # where nothing else names it, it is named by that
        alt = self.renderInlineAsText(token.children, options, env).strip() or unquote(source)
        if _ELSEWHERE.match(source) and not env["links"]:  # no link stands in another
            return Markup('<a class="picture" rel="noopener noreferrer" href="{}">Picture: {}</a>').format(source, alt)
        return Markup('<span class="picture" title="{}">Picture: {}</span>').format(unquote(source), alt)

    def fence(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: _Env) -> str:
        word = _CODE_WORD.match(tokens[idx].info.strip())
        said = Markup(' class="language-{}"').format(word[0]) if word else Markup("")
        return Markup('<pre tabindex="0"><code{}>{}</code></pre>\n').format(said, tokens[idx].content)

    def code_block(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: _Env) -> str:
        return Markup('<pre tabindex="0"><code>{}</code></pre>\n').format(tokens[idx].content)

    def list_item_open(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: _Env) -> str:
        is_done = tokens[idx].meta.get("checked")
        if is_done is None:
            return "<li>"
        said, sign = ("done", "☑") if is_done else ("to do", "☐")
        return f'<li class="task"><span role="img" aria-label="{said}">{sign}</span> '

    def heading_open(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: _Env) -> str:
        anchor = tokens[idx].meta.get("anchor")
        named = Markup(' id="{}{}"').format(AT, anchor) if anchor else ""
        return f"<{_heading_tag(tokens[idx], env)}{named}>"

    def heading_close(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: _Env) -> str:
        return f"</{_heading_tag(tokens[idx], env)}>\n"

    def table_open(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: _Env) -> str:
        return '<div class="wide" tabindex="0"><table>\n'

    def table_close(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: _Env) -> str:
        return "</table></div>\n"

    def th_open(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: _Env) -> str:
        return f'<th scope="col"{_alignment(tokens[idx])}>'

    def td_open(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: _Env) -> str:
        return f"<td{_alignment(tokens[idx])}>"


def _are_too_many(env: _Env) -> bool:
    """Beyond this many characters links and pictures are their words alone."""
    return bool(env["in_links"] > _MOST_IN_LINKS)


def _heading_tag(token: Token, env: _Env) -> str:
    return f"h{min(max(int(token.tag[1:]) + env['lower'], 2), _DEEPEST_HEADING)}"


def _alignment(token: Token) -> str:
    """A class: pages take no style but from the sheet."""
    style = str(token.attrs.get("style", ""))
    return ' class="count"' if style == "text-align:right" else ""


@cache
def _parser() -> MarkdownIt:
    # Markup is told apart from text to be shown as it is written: what stands in a comment is neither list nor heading.
    parser = MarkdownIt("commonmark", {"html": True, "tasklists": True, "maxNesting": _DEEPEST}, renderer_cls=_Escaping)
    parser.enable(["table", "strikethrough"])
    parser.inline.ruler.before("link", "wikilink", _wikilink)
    parser.core.ruler.at("inline", _inline)
    parser.validateLink = _may_stand  # type: ignore[method-assign]
    return parser


def _inline(state: StateCore) -> None:
    """As markdown-it's own rule, for all paragraphs but those that would take too long."""
    left = _MOST_STEPS
    for token in state.tokens:
        if token.type != "inline":
            continue
        steps = len(token.content) * (token.content.count("[") + token.content.count("!["))
        if len(token.content) > _LONGEST_PARAGRAPH or steps > left:
            token.children = [Token("text", "", 0, content=token.content)]
        else:
            left -= steps
            token.children = []
            state.md.inline.parse(token.content, state.md, state.env, token.children)


def _may_stand(url: str) -> bool:
    """Whether an address is one at all; any other is shown as it is written."""
    return bool(_ELSEWHERE.match(url)) or not _SCHEME.match(url)


def _wikilink(state: StateInline, silent: bool) -> bool:
    match = _WIKILINK.match(state.src, state.pos) if state.src.startswith("[[", state.pos) else None
    place, _, anchor = match[1].partition("#") if match else ("", "", "")
    anchors = anchors_of([anchor.strip()]) if anchor.strip() else [""]
    href = _note(place.strip(), anchors[0]) if place.strip() else f"#{AT}{_quoted(anchors[0])}" if anchors[0] else ""
    if not match or not href:
        return False
    if not silent:
        state.push("link_open", "a", 1).meta = {"href": href, "named": place.strip()}
        state.push("text", "", 0).content = match[2] or match[1]
        state.push("link_close", "a", -1)
    state.pos = match.end()
    return True


def _place_of_title(tokens: Sequence[Token], title: str, sections: Mapping[int, Section]) -> int | None:
    """Where a heading begins that says the title, and before which nothing but markup stands."""
    at = next((at for at, token in enumerate(tokens) if token.type != "html_block"), len(tokens))
    place = tokens[at].map if at < len(tokens) else None
    section = sections.get(place[0]) if place else None
    return at if section and section.level == 1 and section.title == title else None


def _give_anchors(tokens: Sequence[Token], sections: Mapping[int, Section]) -> None:
    """As the sections of a note have them: a heading within a list or a quote begins none."""
    for token in tokens:
        if token.type == "heading_open" and token.level == 0 and token.map and token.map[0] in sections:
            token.meta = {**token.meta, "anchor": sections[token.map[0]].anchor}
