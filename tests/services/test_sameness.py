"""Which texts are one fact and which are not, however similar they sound."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from notebook_sync.services.sameness import contradicts, difference, says_same

FIXTURES = Path(__file__).parent.parent / "fixtures"

SAME = [
    ("The ferry leaves at nine", "the ferry leaves at nine."),
    ("The ferry leaves at nine", "Ferry leaves at 09:00 o'clock"),
    ("The user prefers dark mode", "User prefers the dark mode"),
    ("The toll is 1,000 crowns", "The toll is 1000 crowns"),
    ("The ferry doesn\u2019t run on Sundays", "The ferry does not run on Sundays"),
    ("Die Fähre fährt nicht am Sonntag", "die Fähre fährt nicht sonntags"),
    ("Odile's dog is called Bosun", "Odile has a dog called Bosun"),
    ("Odile works at the harbour", "Odile is working at the harbour"),
    ("La salle est à gauche", "la Salle est à gauche"),
    ("The key of the shed is lost", "The shed key is lost"),
    ("Warden locks the shed", "The shed is locked by the warden"),
]
# By what it is that decides.
OTHERS = [
    ("numbers", "The toll is 12 crowns", "The toll is 21 crowns"),
    ("numbers", "It takes 1.5 hours", "It takes 15 hours"),
    ("numbers", "The ferry leaves at 9:30", "The ferry leaves at 9:03"),
    ("numbers", "The toll went up 5%", "The toll went up 5"),
    ("denial", "The ferry runs on Sundays", "The ferry doesn't run on Sundays"),
    ("denial", "The shed has a key", "The shed is without a key"),
    ("denial", "Le bac part le dimanche", "Le bac ne part pas le dimanche"),
    ("denial", "El ferry sale el domingo", "El ferry no sale el domingo"),
    ("denial", "The winch is reliable", "The winch is unreliable"),
    ("dates", "The ferry runs on Sundays", "The ferry runs on Saturdays"),
    ("dates", "The ferry leaves in the morning", "The ferry leaves in the evening"),
    ("dates", "The shed is locked", "The shed was locked"),
    ("dates", "The lamp is lit before the ferry leaves", "The lamp is lit after the ferry leaves"),
    ("choice", "The ferry leaves from the north quay", "The ferry leaves from the south quay"),
    ("choice", "The ferry runs", "The ferry runs if it is calm"),
    ("choice", "The crossing is 12 km", "The crossing is 12 miles"),
    ("denial", "Odile likes tea", "Odile dislikes tea"),
    ("names", "The ferry belongs to Odile", "The ferry belongs to Ines"),
    ("names", "Odile keeps the lamp", "Ines keeps the lamp"),
    ("names", "The key is at runtime/keys.md", "The key is at runtime/locks.md"),
    ("names", "Write to odile@ferry.example", "Write to ines@ferry.example"),
    ("order", "Odile reports to Ines", "Ines reports to Odile"),
    ("order", "The dog sees the cat", "The cat sees the dog"),
    ("order", "The warden is called by the pilot", "The pilot is called by the warden"),
    ("order", "The ferry runs on Sundays, not on Mondays", "The ferry runs on Mondays, not on Sundays"),
    ("order", "It leaves at 9 and returns at 17", "It returns at 9 and leaves at 17"),
    ("order", "The boss of Ines is Odile", "The boss of Odile is Ines"),
]


# Pairs that sound the same, and of which one is lost if they are merged.
FALSE_FRIENDS = [
    ("The user's mother is called Ana", "The user is called Ana"),
    ("The draft of the report is done", "The report is done"),
    ("The user wants to learn Rust", "The user wants to stop learning Rust"),
    ("The key is under the mat", "The key is on the mat"),
    ("A is the parent of B", "B is the parent of A"),
    ("All tests pass", "Some tests pass"),
    ("Meeting moved to room 4b", "Meeting moved to room 4a"),
    ("The variable is userId", "The variable is userID"),
    ("The user is the son of a baker", "The son of the user is a baker"),
    ("Admins may only delete pages", "Only admins may delete pages"),
    ("Marta is older than Ines and younger than Odile", "Marta is younger than Ines and older than Odile"),
    ("Tea is fine without milk, coffee with milk", "Tea is fine with milk, coffee without milk"),
    ("The red wire goes left and the blue wire right", "The blue wire goes left and the red wire right"),
    ("Sam lent Kim the drill", "Kim lent Sam the drill"),
    ("In winter Odile teaches Ines", "In winter Ines teaches Odile"),
    ("The rate rose from 3% to 5%", "The rate rose from 5% to 3%"),
]


@pytest.mark.parametrize(("one", "other"), FALSE_FRIENDS)
def test_false_friends_are_two_facts(one: str, other: str) -> None:
    assert (says_same(one, other), says_same(other, one)) == (False, False)
    assert "" not in (difference(one, other), difference(other, one))


@pytest.mark.parametrize(("older", "newer"), SAME)
def test_what_says_the_same_in_other_forms_is_one_fact(older: str, newer: str) -> None:
    assert (difference(older, newer), difference(newer, older), says_same(older, newer)) == ("", "", True)


@pytest.mark.parametrize(("what", "one", "other"), OTHERS)
def test_what_decides_keeps_two_facts_apart_whichever_is_the_newer(what: str, one: str, other: str) -> None:
    assert difference(one, other) == difference(other, one) == what
    assert (contradicts(one, other), says_same(one, other), says_same(other, one)) == (True, False, False)


def test_a_newer_text_that_says_more_is_another_fact_and_one_that_says_less_is_not() -> None:
    long, short = "The lamp is lit by the warden", "The lamp is lit"
    assert (difference(short, long), difference(long, short), contradicts(short, long)) == ("words", "", False)
    assert says_same(short, long)
    assert not says_same("The lamp is lit by the warden", "The lamp is lit by the pilot")


def test_texts_without_words_are_one_fact_only_where_nothing_is_said() -> None:
    assert difference("", "…!") == ""
    assert difference("", "🚢 ferry") == difference("灯塔关门", "灯塔开门") == "words"
    assert not says_same("", "")
    assert not says_same("Rope", "Sail")


@given(st.text(max_size=200), st.text(max_size=200))
def test_any_two_texts_can_be_compared_and_every_text_is_itself(one: str, other: str) -> None:
    assert difference(one, one) == ""
    assert contradicts(one, other) == contradicts(other, one)
    assert says_same(one, other) == says_same(other, one)


def labelled_pairs(name: str) -> list[tuple[str, str, str]]:
    """Of each pair its label and its two texts."""
    found = []
    for block in (FIXTURES / name).read_text(encoding="utf-8").strip().split("\n\n"):
        first, *lines = block.split("\n")
        for line in lines:
            label, _, text = line.partition(": ")
            found.append((label, first.removeprefix("= "), text))
    return found


# The rules were made on the first file alone.
@pytest.mark.parametrize(("name", "count"), [("sameness.txt", 500), ("sameness_held_out.txt", 100)])
def test_labelled_pairs_are_judged_as_people_judge_them(name: str, count: int) -> None:
    judged = [(label, says_same(one, other)) for label, one, other in labelled_pairs(name)]
    right, taken = judged.count(("same", True)), sum(said for _, said in judged)
    precision, recall = right / taken, right / sum(label == "same" for label, _ in judged)
    print(f"{name}: precision {precision:.3f}, recall {recall:.3f}")
    assert (len(judged), precision >= 0.97, recall >= 0.8) == (count, True, True)
