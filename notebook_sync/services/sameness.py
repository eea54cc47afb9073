"""Whether two texts say the same fact: what decides between them is compared apart from how similar they sound. Pure.

Vectors hardly see a "not", another number, or who does what to whom. Where something that decides differs, or the newer
text says more, two texts are never taken for one fact: a fact that is kept twice is found again, a lost one is not.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Mapping
from functools import lru_cache
from itertools import pairwise, takewhile
from typing import NamedTuple

# Two texts of which one only says less are one fact if the shorter has so many words.
_FEWEST_WORDS = 2


def difference(a: str, b: str) -> str:
    """What keeps the newer text `b` from being the fact that `a` is: numbers, denial, dates, choice, names, order, or
    words; "" where it is that fact, and says no more."""
    older, newer = _read(a), _read(b)
    return _contradiction(older, newer) or ("words" if _added(older, newer) else "")


def contradicts(a: str, b: str) -> bool:
    """Whether something that decides differs between two texts: numbers, a denial, a choice, names, order."""
    return bool(_contradiction(_read(a), _read(b)))


def says_same(a: str, b: str) -> bool:
    """Whether one of two texts is the same fact as the other, or says less of it."""
    older, newer = _read(a), _read(b)
    if min(len(set(older.all)), len(set(newer.all))) < _FEWEST_WORDS:
        return older.all == newer.all and bool(older.all)
    return not (_added(older, newer) and _added(newer, older)) and not _contradiction(older, newer)


def words_of(text: str) -> frozenset[str]:
    """The words that carry what a text says, folded: small words left out, numbers as digits, synonyms as one."""
    return frozenset(_read(text).all)


def decided_by(text: str) -> tuple[tuple[str, ...], int]:
    """What two texts must share to say the same: their numbers, and how often they deny."""
    read = _read(text)
    return tuple(sorted(read.numbers)), len(read.not_what)


class _Read(NamedTuple):
    """What a text says. `all`: each word that is not a small one, folded, in order; `words`: those of them that are no
    numbers and no denials. `names`: words with a capital or digits; `openings`: words whose capital may only come from
    their place. `not_what`: the word behind each denial. `denied`: what is left of words such as unreliable. `doer_at`:
    where in `all` the words behind a "done by" begin, 0 for nowhere. `owner_of`: by what belongs to somebody, who that
    is: Odile's dog, the dog of Odile. `frame`: the small words, with "" for each other word; `is_double`: one of its
    words is there twice. `has_opener`: it begins with a phrase that may be at its end."""

    all: tuple[str, ...]
    words: frozenset[str]
    numbers: tuple[str, ...]
    names: frozenset[str]
    openings: frozenset[str]
    not_what: tuple[str, ...]
    denied: frozenset[str]
    choices: frozenset[tuple[str, str]]
    doer_at: int
    owner_of: Mapping[str, str]
    frame: tuple[str, ...]
    is_double: bool
    has_opener: bool


def _contradiction(one: _Read, other: _Read) -> str:
    if sorted(one.numbers) != sorted(other.numbers):
        return "numbers"
    if len(one.not_what) != len(other.not_what) or one.denied & other.words or other.denied & one.words:
        return "denial"
    if families := _other_choices(one, other):
        return "dates" if families & _OF_TIME else "choice"
    if one.owner_of.keys() - other.words or other.owner_of.keys() - one.words:
        return "words"
    if _has_other_names(one, other) or _has_other_names(other, one):
        return "names"
    return "" if _is_same_order(one, other) else "order"


def _other_choices(one: _Read, other: _Read) -> set[str]:
    """The families of which the texts choose different things; of some, one text may choose nothing, or less."""
    here, there = (
        {family for family, _ in each} for each in (one.choices - other.choices, other.choices - one.choices)
    )
    return here & there | (here | there) & _STRICT


def _has_other_names(one: _Read, other: _Read) -> bool:
    """The first word of a sentence has its capital by its place: it is a name unless the other text has it too."""
    unknown = (one.names | one.openings) - other.words
    return any(not any(_is_form_of(name, word) for word in other.words) for name in unknown)


def _is_same_order(one: _Read, other: _Read) -> bool:
    """Whether both say what they share in one order: the cat sees the dog, the dog sees the cat. Only the order among
    names, numbers, choices of one family and other words counts. These may be turned, too, and a phrase may be at
    either end of a sentence."""
    starts = [each.all[:1] == ("only",) for each in (one, other)]
    if one.not_what != other.not_what or starts[0] != starts[1]:
        return False
    shared, names = set(one.all) & set(other.all), one.names | other.names
    kinds = {word: _kind_of(word, names) for word in shared}
    here, there = ([word for word in dict.fromkeys(each.all) if word in shared] for each in (one, other))
    before, after = (sorted(order, key=kinds.__getitem__) for order in (here, there))
    is_fronted = one.has_opener != other.has_opener and any(here[at:] + here[:at] == there for at in range(len(here)))
    if before == after or is_fronted:
        return True
    fixed = [[word for word in order if kinds[word] != "word"] for order in (before, after)]
    return fixed[0] == fixed[1] and _is_turned(one, other)


def _is_turned(one: _Read, other: _Read) -> bool:
    """Whether one may say the same as the other in another construction: the lamp in the shed, the shed lamp. Words
    that changed places while all between them stayed say something else, so do another doer, and another owner of the
    same thing. What belongs to a word that a text has twice is not known."""
    if one.frame == other.frame or one.is_double or other.is_double:
        return False
    owned = one.owner_of.keys() & other.owner_of.keys()
    if any(one.owner_of[each] != other.owner_of[each] for each in owned):
        return False
    return not _has_other_doer(one, other) and not _has_other_doer(other, one)


def _has_other_doer(passive: _Read, active: _Read) -> bool:
    """Whether a text names who does it behind its verb, and the other one does not name them before it."""
    at = passive.doer_at
    if not 0 < at < len(passive.all) or active.doer_at:
        return False
    verb, doer = passive.all[at - 1 : at + 1]
    order = [word for word in active.all if word in (verb, doer)]
    return order[:1] == [verb] and doer in order


def _kind_of(word: str, names: frozenset[str]) -> str:
    if word in names:
        return "name"
    family = _WORDS.get(word, ("", ""))[0]
    return family if family in _FLOATING else "word" if word[0].isalpha() else "number"


def _added(older: _Read, newer: _Read) -> set[str]:
    """The words that only the newer text has."""
    lost = older.words - newer.words
    return {word for word in newer.words - older.words if not any(_is_form_of(word, each) for each in lost)}


_SHORTEST_STEM = 4
# What two forms of one word may end in. A past says something else.
_ENDINGS = frozenset(("", "s", "es", "e", "ing", "ings", "ment", "ments", "ly", "y", "ies", "ion", "ions"))


def _is_form_of(word: str, other: str) -> bool:
    if other in (f"{word}s", f"{word}e") or word in (f"{other}s", f"{other}e"):
        return True
    stem = len(list(takewhile(lambda pair: pair[0] == pair[1], zip(word, other, strict=False))))
    if stem < max(_SHORTEST_STEM, min(len(word), len(other)) - 2):
        return False
    return {word[stem:], other[stem:]} <= _ENDINGS


# Addresses, paths and identifiers are one word each; then numbers as people write them; then words.
_TOKEN = re.compile(
    r"(?P<name>(?:https?://|www\.)\S+|[\w.+-]+@[\w.-]+\w|(?:[\w.-]+/)+[\w.-]*\w|[^\W\d]\w*[_\d]\w*|\d+[a-z]\w*)"
    r"|(?P<number>(?:(?<=\s)[-+]|\A[-+])?\d+(?:[.,:'/-]?\d+)*%?)"
    r"|(?P<word>[^\W\d_]+(?:['-][^\W\d_]+)*)"
)
_THOUSANDS = re.compile(r"\d{1,3}(?:[,']\d{3})+")
_SENTENCE_BEGINS = re.compile(r"(?:\A|[.!?:;]\s+|\n)\W*\Z")
_HAVE_TO = re.compile(r"\b(?:have|has) to\b")
_PAST = re.compile(r"(\w{3,}?)(?:(?<=(\w))\2)?ed")
# What a word may lose at its ends: Odile's, l'eau.
_JOINED = re.compile(r"\A(?:[ldjmtscn]|qu|un|dell|all|nell|sull)'(?=\w)|'s?\Z")
_LOOK_BACK = 8


# A text is compared with many others, one after the other.
@lru_cache(maxsize=65_536)
def _read(text: str) -> _Read:
    text = unicodedata.normalize("NFKC", text).replace("\u2019", "'").replace("\u2212", "-")
    text = _HAVE_TO.sub("must", text)
    every: list[str] = []
    words, names, openings, numbers = set[str](), set[str](), set[str](), list[str]()
    choices, doer_at = set[tuple[str, str]](), 0
    passive = before = owned = ""
    owner_of, owner, frame = dict[str, str](), "", list[str]()
    for token in _TOKEN.finditer(text):
        source = token[0]
        word = source if token["name"] else _JOINED.sub("", source)
        plain = _folded(word)
        family, said = _family_of(source, word, plain, before) if not token["number"] else ("number", _number(source))
        if family == "small":
            if plain == "of" and every:
                owned = every[-1]
            if plain not in _ARTICLES:
                frame.append(plain)
            if plain == "by" and every[-1:] == [passive]:
                doer_at = len(every)
            if doer_at and every[doer_at - 2 :] == ["was", passive]:
                # What was done by somebody is what somebody did.
                every[-2:], doer_at = [before], doer_at - 1
                words = words - {"was", passive} | {before}
                choices.discard(("then", "was"))
            before = plain
            continue
        if family == "number":
            numbers.append(said)
        elif family not in ("", "not"):
            choices.add((family, said))
            if family not in _UNSAID:
                words.add(said)
        elif not family:
            done = _PAST.fullmatch(plain) if before in _BE else None
            is_spelled = token["name"] or (word[1:] != word[1:].lower() and word != word.upper())
            said = (_DONE.get(plain) if before in _BE else "") or said
            said = said or (word if is_spelled else done[1] if done else plain)
            words.add(said)
            begins = _SENTENCE_BEGINS.search(text[max(0, token.start() - _LOOK_BACK) : token.start()]) is not None
            if token["name"] or any(letter.isupper() for letter in (word[1:] if begins else word)):
                names.add(said)
            elif word[0].isupper():
                openings.add(said)
        every.append(said)
        frame.append("")
        if owner:
            owner_of[said] = owner
        if owned:
            owner_of[owned] = said
        owned, owner = "", said if source.endswith("'s") else ""
        passive, before = said if before in _BE else "", plain
    denied = frozenset(bare for word in words for bare in _without_denial(word))
    return _Read(
        tuple(every),
        frozenset(words),
        tuple(numbers),
        frozenset(names),
        frozenset(openings),
        tuple(behind for word, behind in pairwise([*every, ""]) if word == "not"),
        denied,
        frozenset(choices),
        doer_at,
        {each: owner_of[each] for each in words & owner_of.keys()},
        tuple(frame),
        max(Counter(filter(None, (*every, *frame))).values(), default=0) > 1,
        text.partition(" ")[0].casefold() in _OPENERS,
    )


def _family_of(source: str, word: str, plain: str, before: str) -> tuple[str, str]:
    """The family of a word and what it says there: "small" for one that says nothing, "" for one of no family."""
    family, said = _WORDS.get(plain, ("", ""))
    if not plain or word == "may":
        return "small", ""
    if source.endswith("n't"):
        return "not", "not"
    # A is the parent of B: a letter may be a name.
    is_letter = family == "small" and before and len(word) == 1 and word.isupper()
    return ("", "") if is_letter else ("" if family == "same" else family, said)


def _number(source: str) -> str:
    """09:00, 9:00 and 9 are one number; so are 1,000 and 1000."""
    source = source.lstrip("+")
    if _THOUSANDS.fullmatch(source):
        return re.sub(r"\D", "", source)
    return re.sub(r"(?<![\d.,:])0+(?=\d)", "", source).removesuffix(":00")


def _folded(word: str) -> str:
    apart = unicodedata.normalize("NFD", word.casefold())
    return "".join(letter for letter in apart if not unicodedata.combining(letter))


def _without_denial(word: str) -> list[str]:
    """What a word may deny: reliable, of unreliable. Also what is left of a word that only looks so, which no other
    text has."""
    return [word[len(no) :] for no in ("un", "dis", "non", "in", "im", "ir") if word.startswith(no)]


# Families whose differences are about time; those that a text never says by the way; those that may be left unsaid.
_OF_TIME = frozenset(("day", "month", "season", "relative", "time", "often", "then", "still", "when"))
_STRICT = _OF_TIME | {"condition", "must", "more", "off", "place", "kin", "stop", "sure"}
_UNSAID = frozenset(("whose", "way", "all"))
# Families of words that may be at another place in a sentence that says the same.
_FLOATING = _OF_TIME | {"unit", "way", "all", "condition", "whose", "side", "colour"}
# What a phrase that may be at either end of a sentence begins with.
_OPENERS = frozenset(
    (
        "in",
        "on",
        "at",
        "since",
        "from",
        "before",
        "after",
        "until",
        "during",
        "when",
        "if",
        "every",
        "each",
        "by",
        "for",
    )
)
_ARTICLES = frozenset(("the", "a", "an", "this", "that", "these", "those"))
# What irregular verbs of a passive say, as they are in the present.
_DONE = {
    "paid": "pay", "made": "make", "driven": "drive", "written": "write", "chosen": "choose", "spoken": "speak",
    "taught": "teach", "held": "hold", "given": "give", "sung": "sing", "worn": "wear", "ridden": "ride",
    "fed": "feed", "led": "lead", "built": "build", "cut": "cut", "read": "read", "run": "run", "grown": "grow",
}  # fmt: skip
# What makes a passive of the word behind it.
_BE = frozenset(("is", "are", "be", "been", "being", "get", "gets", "got", "was", "were"))


def _table(lines: str) -> dict[str, tuple[str, str]]:
    """By word, its family and what it says there. One family a line, its choices separated by `|`, the words of each by
    spaces, of which the first is the choice. The last line that has a word counts."""
    found: dict[str, tuple[str, str]] = {}
    for line in lines.strip().splitlines():
        family, _, choices = line.partition(":")
        for words in map(str.split, choices.split("|")):
            found |= dict.fromkeys(words, (family, words[0]))
    return found


# Words that say the same as others (same), nothing by themselves (small), that deny, that are numbers, and choices that
# exclude each other. English, and the most common words of a few other languages, without accents. A word that is
# missing here costs no more than a fact that is kept twice.
_WORDS = _table("""
same: leaves leave departs depart sails | need needs require requires | named called name titled
same: finish finished complete completed | use uses employ employs utilise utilises utilize utilizes
same: live lives reside resides dwell | stored store stores saved keep keeps kept | doctor physician | car automobile
same: phone telephone | photo photograph picture | film movie | flat apartment | holiday vacation | shop store
same: email e-mail | wifi wi-fi | website site homepage | folder directory | delete deletes remove removes
same: create creates make makes | repair repairs fix fixes | help helps assist assists | show shows display displays
same: get gets obtain obtains | reply replies answer answers respond responds
same: choose chooses select selects pick picks | build builds construct constructs | job work occupation | child kid
same: kids children | boss manager supervisor | company firm | town city | road street
same: about roughly approximately circa | wrong incorrect | correct right | error mistake | quiet silent
same: rich wealthy | hard difficult | easy simple | must shall | own owns possess possesses
same: hold holds contain contains | speak speaks talk talks | become becomes | place places put puts
same: state states mention mentions | check checks verify verifies | change changes alter alters modify modifies
same: happen happens occur occurs | try tries attempt attempts | bring brings carry carries | near nearby
same: spouse partner | lawyer attorney | teacher instructor | broke broken | chose chosen | drove driven | fell fallen
same: forgot forgotten | gave given | went gone | grew grown | knew known | rode ridden | saw seen | sang sung
same: spoke spoken | stole stolen | swam swum | threw thrown | wore worn | wrote written | flew flown | hid hidden
same: shook shaken
small: a an the this that these those there here it its is are be am been being do does did has have would shall
small: could and or but so as at in on of for by with about also just very quite who which whose what where how
small: such too o'clock please note can may get gets got per than now then times both any der die das den dem des
small: ein eine einen einem einer und oder ist sind hat haben im um auf fur mit er sie es uhr le la les un une du
small: de et ou ne n avec sont ont au aux dans en il elle ils el los las una y o son ha han lo gli e di del della
small: da nel
day: monday mondays montag montags lundi lundis lunes lunedi | tuesday tuesdays dienstag dienstags mardi martes martedi
day: wednesday wednesdays mittwoch mittwochs mercredi miercoles mercoledi | weekend weekends wochenende
day: thursday thursdays donnerstag donnerstags jeudi jueves giovedi | weekday weekdays werktags
day: friday fridays freitag freitags vendredi viernes venerdi | saturday saturdays samstag samstags samedi sabado sabato
day: sunday sundays sonntag sonntags dimanche domingo domenica
month: january jan januar janvier enero gennaio | february feb februar fevrier febrero febbraio
month: march marz mars marzo | april apr avril abril aprile | may mai mayo maggio | june jun juni juin junio giugno
month: july jul juli juillet julio luglio | august aug aout agosto | september sept septembre septiembre settembre
month: october oct oktober octobre octubre ottobre | november nov novembre noviembre
month: december dec dezember decembre diciembre dicembre
season: spring fruhling printemps primavera | summer sommer ete verano estate | autumn herbst automne otono autunno
season: winter hiver invierno inverno
relative: today heute aujourd'hui hoy oggi | tomorrow morgen demain manana domani | yesterday gestern hier ayer ieri
time: morning mornings morgens matin | noon midday mittag midi | afternoon nachmittag | midnight mitternacht minuit
time: pm evening evenings abends soir | night nights nightly nachts nuit noche
often: always immer toujours siempre sempre | daily taglich quotidien diario | weekly wochentlich hebdomadaire semanal
often: monthly monatlich mensuel mensual | yearly annually jahrlich annuel anual | hourly stundlich | usually meistens
often: often oft souvent | sometimes manchmal parfois | rarely seldom selten rarement
then: was were had used ago war waren hatte etait etaient avait era formerly previously fruher anciennement
then: will wird werden sera soon bald bientot
still: still noch encore todavia | already schon deja ya | again wieder
when: before vor avant antes prima | after nach apres despues dopo | until till bis jusqu hasta
when: during wahrend pendant | since seit depuis desde
whose: i me my mine we us our ours | you your yours | he him his | she her hers | they them their theirs
way: to into towards zu vers | from von
condition: if when wenn si falls | unless sofern sauf | except ausser excepto tranne | instead statt
condition: only nur solo seulement solamente
must: must muss mussen doit debe deve required | should soll devrait
side: north northern nord norte | south southern sud sur | east eastern ost este | west western ouest oeste ovest
hand: left links gauche izquierda sinistra | right rechts droite derecha destra
place: up oben haut arriba above over uber | down unten bas abajo below under unter | inside indoors drinnen
place: outside outdoors draussen | behind hinter derriere detras | front
off: off aus
open: open opens opened offen ouvert abierto | closed closes close shut shuts geschlossen ferme cerrado
begin: begin begins began start starts started beginnt commence empieza | end ends ended endet finit termina
begin: end expire expires
stop: stop stops stopped stopping quit quits
sure: perhaps maybe might possibly probably likely vielleicht
enabled: enabled enable enables active | disabled disable disables inactive
allowed: allow allows allowed permits erlaubt | forbid forbids forbidden prohibited banned verboten | refuse refuses
likes: like likes liked love loves enjoy enjoys prefer prefers preferred want wants mag liebt aime gusta
likes: dislike dislikes disliked hate hates avoid avoids hasst deteste odia
more: more mehr plus mas piu | less fewer weniger moins menos meno | most | least
size: big large larger gross grand grande | small smaller klein petit | high higher hoch | low lower niedrig
size: long longer lang | short shorter kurz court
pace: fast faster quick schnell rapide | slow slower langsam lent
warmth: hot warm heiss chaud | cold cool kalt froid
age: old older oldest alt vieux viejo vecchio | new newer newest neu nouveau nuevo nuovo
order: first erste premier primero primo | second zweite | third dritte | last letzte dernier ultimo | next
all: all every each alle tous todos tutti | some einige | none keine
trade: buy buys bought kauft | sell sells sold verkauft | lend lends lent | borrow borrows borrowed
post: send sends sent mails | receive receives received
rise: increase increases rises raised grows | decrease decreases falls fell shrinks
truth: true wahr vrai | false falsch faux
gain: win wins won | lose loses lost
taking: accept accepts accepted take takes taken | reject rejects rejected decline declines declined
colour: red rot rouge rojo rosso | green grun vert verde | blue blau bleu azul blu | yellow gelb jaune | orange | purple
colour: black schwarz noir negro | white weiss blanc blanco bianco | brown braun | grey gray grau
unit: km kilometres kilometers | metre metres meter meters | cm | mm | mile miles | feet foot ft | kg kilos | grams
unit: lb pounds | litre litres liter liters | ml | seconds | minute minutes min mins minuten | percent prozent
unit: hour hours hrs stunde stunden heure heures hora horas | day days tage jours dias | week weeks woche semaines
unit: month months monat monate mois meses | year years jahr jahre ans anos | kb | mb | gb | tb | celsius | fahrenheit
unit: euro euros eur | dollar dollars usd | knots
kin: mother mutter mere madre | father vater pere padre | sister schwester soeur | brother bruder frere | wife | husband
kin: daughter tochter fille | son sohn fils
not: not no never nor neither nobody nothing cannot without nowhere hardly nicht kein keine keinen keiner keines
not: not nie niemals ohne pas jamais sans aucun aucune nunca sin jamas ningun ninguna non mai senza nessun nessuna
not: not nao sem niet geen nooit zonder inte ikke
number: 0 zero null | 1 one eins once | 2 two zwei deux dos twice | 3 three drei trois tres thrice
number: 4 four vier quatre cuatro quattro | 5 five funf cinq cinco cinque | 6 six sechs seis
number: 7 seven sieben siete sette | 8 eight acht huit ocho otto | 9 nine neun neuf nueve nove
number: 10 ten zehn dix diez dieci | 11 eleven elf onze undici | 12 twelve zwolf douze doce dodici dozen
number: 13 thirteen dreizehn treize | 14 fourteen vierzehn quatorze | 15 fifteen funfzehn quinze
number: 16 sixteen sechzehn seize | 17 seventeen siebzehn | 18 eighteen achtzehn | 19 nineteen neunzehn
number: 20 twenty zwanzig vingt veinte venti | 30 thirty dreissig trente treinta trenta
number: 40 forty vierzig quarante cuarenta | 50 fifty funfzig cinquante cincuenta | 60 sixty sechzig soixante
number: 70 seventy siebzig | 80 eighty achtzig | 90 ninety neunzig | 100 hundred hundert cent cien cento
number: 1000 thousand tausend mille | 1000000 million millionen
""")
