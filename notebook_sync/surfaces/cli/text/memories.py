"""Memories in words, for people at a terminal. Pure: values in, text out; control characters are shown, not sent."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from notebook_sync.files.provenance import EXTERNAL
from notebook_sync.surfaces.cli.text.notebook import counts, first_of, safe
from notebook_sync.surfaces.cli.text.rendering import Rendering, by_width
from notebook_sync.surfaces.cli.text.rows import aligned

Told = Mapping[str, Any]

_MOST_COLUMNS = 20
# What a person calls what a column is taken for, where its own name says less.
_ROLES = {"created_at": "time", "needs_review": "review", "accesses": "uses", "last_accessed": "last use"}


def of_memories(listed: Told, width: int | None = None) -> str:
    """A line for each: its score, its id, its kind, its domain, its title."""
    return aligned([(f"{one['score'] or 0:.2f}", *_cells(one)) for one in listed["results"]], width)


def of_found(found: Told, width: int | None = None) -> str:
    """As `of_memories`, with the similarity in front."""
    return aligned([(f"{one['similarity']:.0%}", *_cells(one)) for one in found["results"]], width)


def _cells(memory: Told) -> tuple[str, ...]:
    marks = f"{'(external) ' if memory.get('provenance') == EXTERNAL else ''}"
    marks += "(needs review) " if memory["needs_review"] else ""
    return memory["notebook_id"], memory["kind"] or "-", memory["domain"] or "-", f"{marks}{_line(memory['title'])}"


def of_adding(added: Told, _: int | None = None) -> str:
    """Where a new memory is, where its structure comes from, and what was filled in."""
    return "\n".join(safe(line) for line in _added(added))


def _added(added: Told) -> Iterator[str]:
    yield f"{added['path']} is written"
    yield f"title       {_line(added['title'])}"
    yield f"id          {added['notebook_id']}"
    yield f"kind        {added['kind'] or 'none'}"
    for name in ("domain", "agent"):
        if added[name]:
            yield f"{name:<10}  {added[name]}"
    if added["tags"]:
        yield f"tags        {', '.join(added['tags'])}"
    yield f"priority    {added['priority']}"
    yield f"structure   {_STRUCTURES[added['structured']]}"
    yield from (f"warning     {warning}" for warning in added.get("warnings", ()))


_STRUCTURES = {
    "given": "from the text",
    "model": "from the language model; the original text is kept below",
    "none": "none: saved as it is, for review",
}


def of_link(link: Told, _: int | None = None) -> str:
    """One link, and what became of it."""
    return "\n".join([safe(f"{link['action']}: {_linked(link)}"), *_warnings(link)])


def _linked(link: Told) -> str:
    why = f": {_line(link['reasoning'])}" if link.get("reasoning") else ""
    return f"{link['from']} {link['type']} {link['to']} ({link['confidence']:.0%}){why}"


def of_inferring(inferred: Told, width: int | None = None) -> str:
    """The links that were found, and those that were dropped, with the reason."""
    would = "" if inferred.get("applied", True) else "would be "
    rows = [(f"{would}{one['action']}", _linked(one)) for one in inferred["links"]]
    rows += [("dropped", f"{_named(one['link'])}: {one['reason']}") for one in inferred["dropped"]]
    rows += [("not all", inferred["trouble"])] if inferred.get("trouble") else []
    asked = (
        [] if rows or "pairs" not in inferred else [f"no links found; {inferred['pairs']:,} pairs are similar enough"]
    )
    return "\n".join([*aligned(rows, width).splitlines(), *asked, *_warnings(inferred)])


def of_ingesting(taken: Told, width: int | None = None) -> str:
    """The links that were taken in or known, and those that were dropped, with the reason."""
    return of_inferring({**taken, "links": [*taken["ingested"], *taken["kept"]]}, width)


def of_dropped(links: Told) -> Iterator[str]:
    """How many links of a synthesis were written down, and why others were not."""
    for name in ("ingested", "kept"):
        if links[name]:
            yield f"{counts(len(links[name]), 'link')} {name}"
    yield from (f"dropped  {_named(one['link'])}: {one['reason']}" for one in links["dropped"])


def _named(link: Any) -> str:
    """What was dropped may be anything that a model wrote."""
    if not isinstance(link, Mapping):
        return _short(link)
    return " ".join(_short(link.get(name, "?")) for name in ("from", "type", "to"))


def _short(value: Any) -> str:
    text = _line(str(value))
    return text if len(text) <= _LONGEST_NAME else f"{text[: _LONGEST_NAME - 1]}…"


_LONGEST_NAME = 40


def of_audit(audit: Told, _: int | None = None) -> str:
    """The counts, then what was found, the first of them with how to mend it."""
    timestamps, importance, score = audit["timestamps"], audit["importance"], audit["score"]
    rows = [
        ("memories", f"{audit['memories']:,}"),
        ("timestamps", f"{timestamps['missing']:,} missing, {timestamps['unparsable']:,} that cannot be read"),
        ("agents", f"{audit['agents']['unknown']:,} unknown"),
        ("structure", f"{audit['unstructured']:,} without one, {audit['needs_review']:,} for review"),
        ("priority", f"{_spread(importance)}, {_share(importance['saturated'])} have the same one"),
        ("score", _spread(score)),
        ("links", _links(audit)),
        ("tags", f"{audit['tags']['per_memory'] or 0:.1f} each, {audit['tags']['none']:,} without any"),
    ]
    more = _more_findings(audit["findings_left_out"])
    return "\n".join([aligned(rows), *_findings(audit["findings"], "findings"), *more])


def _links(audit: Told) -> str:
    if not audit["links"]:
        return "none"
    similar = f"{_share(audit['similar_share'])} of them only say similar"
    return f"{audit['links']:,}, {similar}; {audit['links_broken']:,} lead nowhere"


def of_fix(fixed: Told, _: int | None = None) -> str:
    """What was, or would be, mended, and what was left."""
    rows = [
        (one["path"], one["field"], f"{_value(one['before'])} → {_value(one['after'])} ({one['because']})")
        for one in fixed["changes"]
    ]
    left_out = fixed["left_out"]
    told = counts(len(rows) + left_out["changes"], "change")
    lines = [
        *aligned(rows).splitlines(),
        f"{told}{', none of them made: --dry-run' if rows and not fixed['applied'] else ''}",
    ]
    if fixed["backup"]:
        lines.append(f"backup    {safe(fixed['backup'])}")
    more = _more_findings(left_out["left"])
    stopped = [safe(f"stopped  {_line(fixed['trouble'])}")] if fixed.get("trouble") else []
    return "\n".join([*lines, *_findings(fixed["left"], "that are left"), *more, *stopped, *_warnings(fixed)])


def _findings(findings: Sequence[Told], label: str) -> Iterable[str]:
    """A line for each; what to do about it stands at the first for which that is to be done."""
    lines: list[str] = []
    advised: set[str] = set()
    for one in findings:
        advice = "" if one["fix"] in advised else f"; {one['fix']}"
        advised.add(one["fix"])
        lines.append(safe(f"{_place(one)}  {one['what']}{advice}"))
    return first_of(lines, label)


def _more_findings(count: int) -> list[str]:
    return [f"  {counts(count, 'more finding')}"] if count else []


def _place(finding: Told) -> str:
    return f"{finding['path']}:{finding['line']}" if finding["line"] else str(finding["path"])


def _value(value: Any) -> str:
    return "nothing" if value in (None, "", [], ()) else _short(value)


def of_scores(scored: Told, _: int | None = None) -> str:
    """How many memories were scored, and how their scores lie."""
    return f"{counts(scored['scored'], 'memory', 'memories')} scored: {_spread(scored)}"


def of_import(imported: Told, _: int | None = None) -> str:
    """What became of the records, and where the way back is."""
    would = "would be " if imported["added"] and not imported["backup"] else ""
    lines = [
        f"{counts(imported['read'], 'record')} read: {imported['added']:,} {would}added, {imported['already']:,} here "
        f"already, {len(imported['failed']):,} failed",
    ]
    if imported["columns"]:
        lines.append(f"columns   {_columns(imported['columns'], imported['not_taken'])}")
    if imported["needs_review"]:
        lines.append(f"{imported['needs_review']:,} of them need a review: notebook-sync memory list --needs-review")
    if imported["deleted"]:
        lines.append(f"{imported['deleted']:,} more were here, deleted since, and left so: --again brings them back")
    if imported["backup"]:
        lines.append(f"backup    {imported['backup']}")
    if not imported["lossless"]:
        lines.append("the counts do not add up: something was lost")
    if imported["left_in"]:
        lines.append(f"failed    as they were, in {imported['left_in']}")
    failed = [safe(f"{one['line']}: {one['reason']}") for one in imported["failed"]]
    links = [_line(safe(f"{one['line']}: no link {one['link']}: {one['reason']}")) for one in imported["links_dropped"]]
    told = [*first_of(failed, "that failed"), *first_of(links, "that are no links")]
    return "\n".join([*map(safe, lines), *told, *_warnings(imported)])


def _columns(taken: Mapping[str, str], untaken: Sequence[str]) -> str:
    """Which column was taken for what."""
    found = ", ".join(f"{_ROLES.get(role, role)} from `{column}`" for role, column in taken.items())
    names = ", ".join(untaken[:_MOST_COLUMNS])
    more = f" and {len(untaken) - _MOST_COLUMNS:,} more" if len(untaken) > _MOST_COLUMNS else ""
    return f"{found}; not taken: {names}{more}" if untaken else found


def of_figures(figures: Told, _: int | None = None) -> str:
    """The table of how well it does."""
    score, compiled, synthesis = figures["score"], figures["compile"], figures["synthesis"]
    return aligned(
        [
            ("memories", f"{figures['memories']:,}"),
            ("structured", f"{_share(figures['structured_share'])}; {figures['needs_review']:,} for review"),
            ("causal links", f"{figures['causal_links']:,}"),
            ("score", _spread(score)),
            ("briefs", f"{compiled['count']:,} compiled; {_took(compiled)}"),
            (
                "syntheses",
                f"{synthesis['asked']:,} asked for, {_share(synthesis['hit_rate'])} of them in the cache; "
                f"{synthesis['answered']:,} answered, {synthesis['failed']:,} failed; {_took(synthesis)}",
            ),
            ("calls today", f"{synthesis['today']:,} of {synthesis['daily_limit']:,}"),
        ]
    )


def _share(share: float | None) -> str:
    return "none" if share is None else f"{share:.0%}"


def _spread(told: Told) -> str:
    """A mean and how far values lie apart from it."""
    return "none" if told["mean"] is None else f"{told['mean']:.2f} ± {told['sigma']:.2f}"


def _took(figures: Told) -> str:
    """How long it took; nothing was timed where there is no figure."""
    if figures["p50_ms"] is None:
        return "none timed"
    return f"p50 {figures['p50_ms']:,.0f} ms, p95 {figures['p95_ms']:,.0f} ms"


def _warnings(told: Told) -> Iterator[str]:
    return (safe(f"warning  {_line(warning)}") for warning in told.get("warnings", ()))


def _line(text: str) -> str:
    return " ".join(text.split())


def _is_lossy(imported: Told) -> bool:
    return bool(imported["failed"] or not imported["lossless"] or not imported["read"])


MEMORIES: Mapping[str, Rendering] = {
    "memory add": by_width(of_adding),
    "memory list": by_width(of_memories),
    "memory search": by_width(of_found),
    "memory link": by_width(of_link),
    "memory ingest": by_width(of_ingesting, lambda answer: bool(answer["dropped"])),
    "memory infer": by_width(of_inferring),
    "memory audit": by_width(of_audit),
    "memory fix": by_width(of_fix, lambda answer: bool(answer.get("trouble"))),
    "memory score": by_width(of_scores),
    "memory import": by_width(of_import, _is_lossy),
    "context figures": by_width(of_figures),
}
