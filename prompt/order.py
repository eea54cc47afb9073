"""In which order what a text holds leaves, least worth first. The order depends on the text alone, never on a cap, so
that a larger cap shows all that a smaller one does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import accumulate, pairwise

from prompt.budget import Count
from prompt.tree import Block

# An atom: a leaf, and which of its stretches, counted from 0.
Atom = tuple[Block, int]


def leaving_order(root: Block) -> list[Atom]:
    """Every atom of the text in the order in which they leave; the blocks are told their ranks.

    What is pinned leaves when everything else is gone; before that and then, in this order: done tasks, the oldest
    first; the ends of long blocks; section after section.
    """
    order: list[Atom] = []
    sections = list(_sections(root))
    for pinned in (False, True):
        entries = [_own_entries(section) for section in sections if section.pinned == pinned]
        leaves = [leaf for own in entries for entry in own for leaf in _leaves(entry)]
        done = _done(entry for own in entries for entry in own)
        order += [atom for leaf in done for atom in _stretches(leaf, 0)]
        left = {id(leaf) for leaf in done}
        leaves = [leaf for leaf in leaves if id(leaf) not in left]
        order += [atom for leaf in leaves if leaf.long for atom in _stretches(leaf, 1)]
        for leaf in leaves:
            order += [(leaf, 0)] if leaf.long else _stretches(leaf, 0)
    _rank(root, order)
    return order


def count_tokens_of(root: Block, text: str, tokens: int, count: Count) -> None:
    """Tell every block its tokens: each piece is counted with what separates it from the next one. `tokens` is what
    all of `text` is."""
    pieces = list(_pieces(root))
    for (start, block, is_share), (end, _, _) in pairwise([*pieces, (len(text), root, False)]):
        own = count(text[start:end])
        block.tokens += own
        if is_share:
            block.shares.append(own)
    if _sum(root) == 0:
        root.tokens = tokens


def reckoned(root: Block, order: Sequence[Atom], cost: Callable[[Block], int]) -> list[int]:
    """About how many tokens are shown when the first 0, 1, 2 … atoms have left.

    That is the atoms and frames that stay, and what `cost` says of one omission line in a section for each run of
    what is gone.
    """
    change = [0] * (len(order) + 2)
    for rank, (leaf, stretch) in enumerate(order):
        change[rank + 1] -= leaf.shares[stretch] if leaf.ends else leaf.tokens
    before = len(order)
    for rank, tokens, section in _in_text_order(root, root):
        change[rank + 1] -= tokens
        # A run begins here while this is gone and what stands before it is not.
        if rank < before:
            price = cost(section)
            change[rank + 1] += price
            change[before + 1] -= price
        before = rank
    change[0] = root.tokens
    return list(accumulate(change))[: len(order) + 1]


def _sections(section: Block) -> Iterator[Block]:
    """Sections in the order in which they leave: the last one first, children before their parent.

    Where all siblings carry a date, the oldest first, however the file is ordered.
    """
    children = [child for child in section.children if child.kind == "section"]
    if len(children) > 1 and all(child.day for child in children):
        children.sort(key=lambda child: child.day)
    else:
        children.reverse()
    for child in children:
        yield from _sections(child)
    yield section


def _own_entries(section: Block) -> Sequence[Block]:
    """What stands directly in a section, those that leave first first; a heading with nothing below it is its own."""
    if section.kind == "section" and not section.children:
        return [section]
    return _older_first([child for child in section.children if child.kind == "entry"])


def _older_first(entries: Sequence[Block]) -> Sequence[Block]:
    """Additions go to the end, so the first is the oldest, unless all of them say otherwise by a date."""
    return sorted(entries, key=lambda entry: entry.day) if all(entry.day for entry in entries) else entries


def _leaves(entry: Block) -> Iterator[Block]:
    if not entry.children:
        yield entry
    elif entry.leads:
        for child in (*entry.children[1:], entry.children[0]):
            yield from _leaves(child)
    else:
        yield from _older_first(entry.children)


def _done(entries: Iterator[Block]) -> list[Block]:
    """The leaves of ticked tasks, oldest task first; a task with an open one below it is not done."""
    tasks = [task for entry in entries for task in _ticked(entry)]
    return [leaf for task in _older_first(tasks) for leaf in _leaves(task)]


def _ticked(entry: Block) -> Iterator[Block]:
    if entry.done:
        yield entry
    elif entry.leads:
        for child in entry.children:
            yield from _ticked(child)


def _stretches(leaf: Block, least: int) -> list[Atom]:
    return [(leaf, stretch) for stretch in range(len(leaf.ends), least - 1, -1)]


def _rank(root: Block, order: Sequence[Atom]) -> None:
    for rank, (leaf, stretch) in enumerate(order):
        if stretch == len(leaf.ends):
            leaf.first = rank
        leaf.last = rank
    _rank_frames(root)


def _rank_frames(block: Block) -> None:
    if block.children:
        for child in block.children:
            _rank_frames(child)
        block.first = min(child.first for child in block.children)
        block.last = max(child.last for child in block.children)


def _pieces(block: Block) -> Iterator[tuple[int, Block, bool]]:
    """Where each frame, leaf and stretch of a leaf begins, in the text's order."""
    if block.children:
        if block.head:
            yield block.head[0], block, False
        for child in block.children:
            yield from _pieces(child)
    elif block.ends:
        block.shares = []
        for start in (0, *(end.at for end in block.ends)):
            yield block.start + start, block, True
    elif block.kind != "root":
        yield block.start, block, False


def _sum(block: Block) -> int:
    block.tokens += sum(_sum(child) for child in block.children)
    return block.tokens


def _in_text_order(block: Block, section: Block) -> Iterator[tuple[int, int, Block]]:
    """Each frame and stretch below `block` as the text has them: its rank, tokens that no atom has, and its section."""
    if block.kind == "section":
        section = block
    if block.children:
        if block.head:
            yield block.last, block.tokens - sum(child.tokens for child in block.children), section
        for child in block.children:
            yield from _in_text_order(child, section)
    elif block.ends:
        yield block.last, 0, section
        for rank in reversed(range(block.first, block.first + len(block.ends))):
            yield rank, 0, section
    else:
        yield block.last, 0, section
