"""The one tokenizer: what `grep` finds, search finds, in every script and spelling."""

import sqlite3
import unicodedata
from contextlib import closing

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from notebook_sync.search.words import MOST_ASKED, WordAnalyzer, stem

ANALYZER = WordAnalyzer()


def finds(query: str, text: str) -> bool:
    """Whether the text has some spelling of every word that is asked for."""
    has = set(ANALYZER.terms(text))
    return all(has.intersection(ANALYZER.query_terms(word)) for word in query.split())


def has_all(query: str, text: str) -> bool:
    """Whether the text has every term that is asked for."""
    return set(ANALYZER.query_terms(query)) <= set(ANALYZER.terms(text))


@pytest.mark.parametrize(
    ("query", "text"),
    [
        ("Strasse", "Straße und Müller"),
        ("straße", "STRASSE"),
        ("Mueller", "Müller"),
        ("muller", "Müller"),
        ("Müller", "Frau Mueller"),
        ("Moeller", "Møller"),
        ("елка", "Ёлка стоит в углу."),
        ("отчет", "Отчёт готов."),
        ("coeur", "cœur naïve façade"),
        ("naive facade", "cœur naïve façade"),
        ("hotel aurelie", "l'hôtel d'Aurélie ouvre"),
        ("first office floor", "The ﬁrst ofﬁce ﬂoor"),
        ("FULLWIDTH", "ＦＵＬＬＷＩＤＴＨ"),
        ("x2", "x²"),
        ("Zoë", "Zoe\u0301, Zoe"),
        ("محمد", "مُحَمَّد كتب التقرير"),
        ("شلوم کتاب", "شلوم كتاب"),
        ("שלום", "שָׁלוֹם"),
        ("شركه", "شركة"),
        ("Ίσος", "ίσοσ"),
        ("istanbul", "İSTANBUL"),
        ("hard", "har\u00add"),
        ("123", "١٢٣"),
        ("हिन्दी", "यह हिन्दी है"),
        ("🚀", "Ship it 🚀 and party"),
        ("👩", "Family 👨‍👩‍👧‍👦"),
        ("🇨🇭", "flag 🇨🇭"),
        ("5€", "costs 5 €"),
        ("resume", "résumé"),
        ("retry", "all the RETRIES"),
        ("C++", "written in C++."),
        ("C#", "written in C#, not C"),
        ("don't", "they don't sail"),
        ("a-b", "pier a-b"),
        ("max_retries", "set max_retries = 3"),
        ("retries", "set max_retries = 3"),
        ("get_user_name", "Call get_user_name()"),
        ("foo::bar", "foo::bar"),
        ("ERR_CONN_RESET", "an ERR_CONN_RESET again"),
        ("192.168.0.12", "at 192.168.0.12:80"),
        (".NET node.js", ".NET, node.js"),
        ("1000", "1,000 items"),
        ("1,000", "1000 items"),
        ("x.y@z.example", "e-mail x.y@z.example"),
    ],
)
def test_a_word_is_found_in_another_spelling(query: str, text: str) -> None:
    assert finds(query, text)


SENTENCES = {
    "Chinese": "请把护照复印件交给码头",
    "Japanese": "東京タワーへ行くフェリーは九時に出ます",
    "Korean": "회의는 부두에서 화요일에 열린다",
    "Thai": "เรือข้ามฟากออกเวลาเก้าโมงเช้า",
    "Lao": "ເຮືອຂ້າມຟາກອອກເວລາເກົ້າໂມງ",
    "Khmer": "សាឡាងចេញដំណើរម៉ោងប្រាំបួន",
    "Myanmar": "ကူးတို့သင်္ဘောသည်ကိုးနာရီထွက်သည်",
}


@pytest.mark.parametrize("sentence", SENTENCES.values(), ids=SENTENCES)
def test_every_part_of_a_text_without_spaces_is_found(sentence: str) -> None:
    run = unicodedata.normalize("NFKC", sentence.split()[-1])
    for start in range(len(run) - 1):
        for end in range(start + 2, len(run) + 1):
            assert has_all(run[start:end], sentence)
    assert not has_all(run[::-1], sentence)


@pytest.mark.parametrize("character", ["照", "の", "배"])
def test_a_single_character_that_is_a_word_is_found(character: str) -> None:
    assert finds(character, f"護{character}護")
    assert ANALYZER.query_terms(f"護{character}") == [f"護{character}"]


def test_words_of_several_scripts_in_one_are_cut_apart() -> None:
    assert ANALYZER.terms("Ferry渡船v2") == ["ferri", "渡", "渡船", "船", "v2"]


def test_stop_words_are_asked_for_only_if_nothing_else_is() -> None:
    assert ANALYZER.query_terms("When does the ferry sail?") == ["ferri", "sail"]
    assert ANALYZER.query_terms("To be, or not to be") == ["to", "be", "or", "not", "to", "be"]
    assert "the" in ANALYZER.terms("the ferry")
    assert ANALYZER.query_terms("?!") == []


def test_a_query_has_so_many_terms_and_a_term_so_many_characters() -> None:
    assert len(ANALYZER.query_terms(" ".join(f"word{number}" for number in range(1_000)))) == MOST_ASKED
    digest = "0123456789abcdef" * 8
    assert finds(digest, f"sha512: {digest}")
    assert max(map(len, ANALYZER.terms("f" * 100_000 + " " + "é" * 100_000))) <= 64


@given(st.text())
@example("a\u0130b")
@example("ﬀ\u0345")
@example("\u1e9e\ufb05")
def test_a_term_has_no_space_and_no_ascii_mark_and_words_are_the_terms_joined(text: str) -> None:
    terms = ANALYZER.terms(text)
    assert " ".join(terms) == ANALYZER.joined(text)
    assert all(not each.isspace() and (each.isalnum() or not each.isascii()) for term in terms for each in term)
    assert terms == ANALYZER.terms(text) == WordAnalyzer().terms(text)


@given(st.text(st.characters(codec="utf-8"), max_size=30))
def test_forms_of_unicode_do_not_matter(text: str) -> None:
    assert ANALYZER.terms(unicodedata.normalize("NFD", text)) == ANALYZER.terms(unicodedata.normalize("NFC", text))
    assert ANALYZER.terms(unicodedata.normalize("NFKC", text)) == ANALYZER.terms(text)


MARKS = "\"'*()^:-~{}[]|&!.,;/\\<>= \n\t\0"


@given(st.lists(st.sampled_from(["ferry", "pier", "nine"]), min_size=1), st.text(MARKS, min_size=1))
def test_marks_between_words_are_data(words: list[str], marks: str) -> None:
    assert ANALYZER.query_terms(marks + marks.join(words) + marks) == ANALYZER.query_terms(" ".join(words))


ENDINGS = """s es ies ed eed ing at ating bling izing ational tional enci anci izer bli alli entli eli ousli ization
ation ator alism iveness fulness ousness aliti iviti biliti logi icate ative alize iciti ical ful ness al ance ence er
ic able ible ant ement ment ent sion tion ou ism ate iti ous ive ize e ll lle y ly"""
STARTS = "hop happ tann fil agre conflat troubl siz fall rel motor sky syzyg controll roll day b tr oat yes"


def test_stems_are_those_of_the_engine() -> None:
    """SQLite's own stemmer is somebody else's reading of the same paper."""
    words = sorted({start + ending for start in STARTS.split() for ending in ["", *ENDINGS.split()]} | {"a", "is"})
    with closing(sqlite3.connect(":memory:")) as db:
        db.execute("CREATE VIRTUAL TABLE words USING fts5(word, tokenize = 'porter ascii')")
        db.execute("CREATE VIRTUAL TABLE terms USING fts5vocab(words, instance)")
        db.executemany("INSERT INTO words (rowid, word) VALUES (?, ?)", enumerate(words))
        expected = [term for (term,) in db.execute("SELECT term FROM terms ORDER BY doc")]
    assert [stem(word) for word in words] == expected


@pytest.mark.parametrize(
    ("query", "at"), [("max", 4), ("retries", 8), ("船咖", 18), ("café", 21), ("C++", 26), ("🚀", 30), ("ferry", 0)]
)
def test_the_first_place_of_a_word_is_where_a_reader_sees_it(query: str, at: int) -> None:
    text = "See max_retries, 渡船咖 café C++ 🚀 max"
    assert ANALYZER.first_place(text, set(ANALYZER.query_terms(query))) == at
