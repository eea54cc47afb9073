"""Words that decide between two facts: numbers, denials, and families of which a fact chooses one. English, and the
commonest words of a few other languages, without accents.

A word that is missing costs no more than a fact kept twice, or one that the owner has to part again.
"""

from __future__ import annotations

from collections.abc import Mapping


def _families(lines: str) -> dict[str, tuple[str, str]]:
    """By word, its family and the choice that it is: a line a family, its choices parted by `|`."""
    found: dict[str, tuple[str, str]] = {}
    for line in lines.strip().splitlines():
        family, _, choices = line.partition(":")
        for choice in choices.split("|"):
            words = choice.split()
            found |= {word: (family.strip(), words[0]) for word in words}
    return found


def _words(lines: str) -> frozenset[str]:
    return frozenset(lines.split())


FAMILIES: Mapping[str, tuple[str, str]] = _families("""
day: monday mondays montag montags lundi lunes lunedi | tuesday tuesdays dienstag dienstags mardi martes martedi
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
often: often oft souvent | sometimes manchmal parfois | rarely seldom selten rarement | once einmal | twice zweimal
then: was were had used ago war waren hatte etait etaient avait era formerly previously fruher anciennement
then: will wird werden sera soon bald bientot
still: still noch encore todavia | already schon deja ya | again wieder
when: before vor avant antes prima | after nach apres despues dopo | until till bis jusqu hasta
when: during wahrend pendant | since seit depuis desde
whose: i me my mine we us our ours | you your yours | he him his | she her hers | they them their theirs
way: to into towards zu vers | from von
condition: if wenn si falls | unless sofern sauf | when | except ausser excepto tranne | instead statt | only nur solo
condition: seulement solamente
must: must muss mussen doit debe deve required | should soll devrait | can kann peut puede | might darf
side: north northern nord norte | south southern sud sur | east eastern ost est este | west western ouest oeste ovest
hand: left links gauche izquierda sinistra | right rechts droite derecha destra
place: up oben haut arriba above over uber | down unten bas abajo below under unter | inside indoors drinnen
place: outside outdoors draussen | behind hinter derriere detras | front
off: off aus
open: open opens opened offen ouvert abierto | closed closes close shut geschlossen ferme cerrado
begin: begin begins began start starts started beginnt commence empieza | end ends ended endet finit termina
begin: stop stops stopped
enabled: enabled enable enables active | disabled disable disables inactive
allowed: allow allows allowed permits erlaubt | forbid forbids forbidden prohibited banned verboten | refuse refuses
likes: like likes liked love loves enjoy enjoys prefer prefers preferred mag liebt aime gusta
likes: dislike dislikes disliked hate hates avoid avoids hasst deteste odia
more: more mehr plus mas piu | less fewer weniger moins menos meno | most | least
size: big large larger gross grand grande | small smaller little klein petit | high higher hoch | low lower niedrig
size: long longer lang | short shorter kurz court
pace: fast faster quick schnell rapide | slow slower langsam lent
warmth: hot warm heiss chaud | cold cool kalt froid
age: old older alt vieux viejo vecchio | new newer neu nouveau nuevo nuovo
place in order: first erste premier primero primo | second zweite | third dritte | last letzte dernier ultimo | next
all: all every each alle tous todos tutti both | some einige | any | none keine
trade: buy buys bought kauft | sell sells sold verkauft | lend lends lent | borrow borrows borrowed
post: send sends sent | receive receives received
rise: increase increases rises raised grows | decrease decreases falls fell shrinks
truth: true wahr vrai | false falsch faux
gain: win wins won | lose loses lost | accept accepts accepted | reject rejects rejected decline declines declined
colour: red rot rouge rojo rosso | green grun vert verde | blue blau bleu azul blu | yellow gelb jaune | orange | purple
colour: black schwarz noir negro | white weiss blanc blanco bianco | brown braun | grey gray grau
unit: km kilometres kilometers | metre metres meter meters | cm | mm | mile miles | feet foot ft | kg kilos | grams
unit: lb pounds | litre litres liter liters | ml | second seconds | minute minutes min mins minuten | percent prozent
unit: hour hours hrs stunde stunden heure heures hora horas | days tage jours dias | week weeks woche wochen semaines
unit: month months monat monate mois meses | year years jahr jahre ans anos | kb | mb | gb | tb | celsius | fahrenheit
unit: euro euros eur | dollar dollars usd | knots
kin: mother mutter mere madre | father vater pere padre | sister schwester soeur | brother bruder frere | wife | husband
kin: daughter tochter fille | son sohn fils
""")
OF_TIME = frozenset(("day", "month", "season", "relative", "time", "often", "then", "still", "when"))
DENIALS = _words("""
not no never nor neither nobody nothing cannot without nowhere hardly nicht kein keine keinen keiner keines nie niemals
ohne pas jamais sans aucun aucune nunca sin jamas ningun ninguna non mai senza nessun nessuna nao sem niet geen nooit
zonder inte ikke
""")
NUMBERS: Mapping[str, str] = {
    word: number
    for number, words in {
        "0": "zero null",
        "1": "one eins",
        "2": "two zwei deux dos",
        "3": "three drei trois tres",
        "4": "four vier quatre cuatro quattro",
        "5": "five funf cinq cinco cinque",
        "6": "six sechs seis",
        "7": "seven sieben siete sette",
        "8": "eight acht huit ocho otto",
        "9": "nine neun neuf nueve nove",
        "10": "ten zehn dix diez dieci",
        "11": "eleven elf onze undici",
        "12": "twelve zwolf douze doce dodici dozen",
        "13": "thirteen dreizehn treize",
        "14": "fourteen vierzehn quatorze",
        "15": "fifteen funfzehn quinze",
        "16": "sixteen sechzehn seize",
        "17": "seventeen siebzehn",
        "18": "eighteen achtzehn",
        "19": "nineteen neunzehn",
        "20": "twenty zwanzig vingt veinte venti",
        "30": "thirty dreissig trente treinta trenta",
        "40": "forty vierzig quarante cuarenta",
        "50": "fifty funfzig cinquante cincuenta",
        "60": "sixty sechzig soixante",
        "70": "seventy siebzig",
        "80": "eighty achtzig",
        "90": "ninety neunzig",
        "100": "hundred hundert cent cien cento",
        "1000": "thousand tausend mille",
        "1000000": "million millions millionen",
    }.items()
    for word in words.split()
}
# What says nothing by itself.
SMALL = _words("""
a an the this that these those there here it its is are be am been being do does did has have would shall could and or
but so as at in on of for by with about also just very quite who which whose what where how such too o'clock please note
der die das den dem des ein eine einen einem einer und oder ist sind hat haben im um auf fur mit er sie es
le la les un une du de et ou ne avec sont ont au aux dans en il elle ils el los las una y o son ha han
lo gli e di del della da nel
""")
