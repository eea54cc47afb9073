"""Which texts are one fact and which are not, however alike they sound."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from notebook_sync.notes.facts.alike import contradiction, difference

SAME = [
    ("The ferry leaves at nine", "the ferry leaves at nine."),
    ("The ferry leaves at nine", "The ferry leaves at 9:00"),
    ("The ferry leaves at nine", "Ferry leaves at 09:00 o'clock"),
    ("The user prefers dark mode", "User prefers the dark mode"),
    ("The ferry runs on Sundays", "The ferry runs Sundays"),
    ("The toll is 1,000 crowns", "The toll is 1000 crowns"),
    ("The ferry doesn't run on Sundays", "The ferry does not run on Sundays"),
    ("The ferry doesn\u2019t run", "The ferry doesn't run"),
    ("Die Fähre fährt nicht am Sonntag", "die Fähre fährt nicht sonntags"),
    ("Odile's dog is called Bosun", "Odile has a dog called Bosun"),
    ("Odile works at the harbour", "Odile is working at the harbour"),
    ("La salle est à gauche", "la Salle est à gauche"),
    ("Ropes are kept in the shed", "rope is kept in the shed"),
]
# By what it is that decides.
OTHERS = [
    ("numbers", "The ferry leaves at nine", "The ferry leaves at ten"),
    ("numbers", "The toll is 12 crowns", "The toll is 21 crowns"),
    ("numbers", "It takes 1.5 hours", "It takes 15 hours"),
    ("numbers", "The ferry leaves at 9:30", "The ferry leaves at 9:03"),
    ("numbers", "The toll went up 5%", "The toll went up 5"),
    ("denial", "The ferry runs on Sundays", "The ferry does not run on Sundays"),
    ("denial", "The ferry runs on Sundays", "The ferry doesn't run on Sundays"),
    ("denial", "The ferry runs on Sundays", "The ferry no longer runs on Sundays"),
    ("denial", "The shed has a key", "The shed is without a key"),
    ("denial", "Die Fähre fährt am Sonntag", "Die Fähre fährt am Sonntag nicht"),
    ("denial", "Le bac part le dimanche", "Le bac ne part pas le dimanche"),
    ("denial", "El ferry sale el domingo", "El ferry no sale el domingo"),
    ("denial", "The winch is reliable", "The winch is unreliable"),
    ("dates", "The ferry runs on Sundays", "The ferry runs on Saturdays"),
    ("dates", "The timetable begins in May", "The timetable begins in June"),
    ("dates", "The ferry leaves in the morning", "The ferry leaves in the evening"),
    ("dates", "The shed is locked", "The shed was locked"),
    ("dates", "The lamp is lit before the ferry leaves", "The lamp is lit after the ferry leaves"),
    ("choice", "The ferry leaves from the north quay", "The ferry leaves from the south quay"),
    ("choice", "The ferry leaves at nine", "The ferry leaves at nine from the quay"),
    ("choice", "The ferry runs", "The ferry runs if it is calm"),
    ("choice", "The crossing is 12 km", "The crossing is 12 miles"),
    ("choice", "The office opens early", "The office closes early"),
    ("choice", "Odile likes tea", "Odile dislikes tea"),
    ("choice", "Dogs are allowed", "Dogs are forbidden"),
    ("choice", "The buoy is red", "The buoy is green"),
    ("names", "The ferry belongs to Odile", "The ferry belongs to Ines"),
    ("names", "Odile keeps the lamp", "Ines keeps the lamp"),
    ("names", "The key is at runtime/keys.md", "The key is at runtime/locks.md"),
    ("names", "Write to odile@ferry.example", "Write to ines@ferry.example"),
    ("names", "The boat is called SeaBird", "The boat is called SeaGull"),
    ("order", "Odile reports to Ines", "Ines reports to Odile"),
    ("order", "The dog sees the cat", "The cat sees the dog"),
    ("order", "The ferry runs on Sundays, not on Mondays", "The ferry runs on Mondays, not on Sundays"),
    ("order", "It leaves at 9 and returns at 17", "It returns at 9 and leaves at 17"),
]


@pytest.mark.parametrize(("older", "newer"), SAME)
def test_what_says_the_same_in_other_forms_is_one_fact(older: str, newer: str) -> None:
    assert difference(older, newer) == difference(newer, older) == ""


@pytest.mark.parametrize(("what", "one", "other"), OTHERS)
def test_what_decides_keeps_two_facts_apart_whichever_is_the_newer(what: str, one: str, other: str) -> None:
    assert difference(one, other) == difference(other, one) == contradiction(one, other) == what


def test_a_newer_text_that_says_more_is_another_fact_and_one_that_says_less_is_not() -> None:
    assert difference("The lamp is lit", "The lamp is lit by the warden") == "words"
    assert difference("The lamp is lit by the warden", "The lamp is lit") == ""
    assert contradiction("The lamp is lit", "The lamp is lit by the warden") == ""


def test_a_word_stands_for_another_only_where_it_means_what_that_one_does() -> None:
    older, newer = "The timetable is printed in the office", "The timetable is copied in the office"
    asked = []

    def means(word: str, others: Sequence[str]) -> bool:
        asked.append((word, *others))
        return True

    assert difference(older, newer) == "words"
    assert difference(older, newer, means) == ""
    assert asked == [("copied", "printed")]
    assert difference(older, newer, lambda word, others: False) == "words"
    assert difference("Odile worked there", "Odile works there", means) == "words", "a past is no form of the present"


def test_texts_without_words_are_one_fact_only_where_nothing_is_said() -> None:
    assert difference("", "…!") == ""
    assert difference("", "🚢 ferry") == "words"
    assert difference("灯塔关门", "灯塔开门") == "words"
