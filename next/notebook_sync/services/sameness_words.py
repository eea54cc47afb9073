"""The words that decide whether two facts say the same: choices that exclude each other, denials, numbers, synonyms.

English, and the most common words of a few other languages, without accents. A word that is missing here costs no more
than a fact that is kept twice.
"""

from __future__ import annotations

from collections.abc import Mapping


def _choices(lines: str) -> dict[str, tuple[str, str]]:
    """By word, its family and the choice that it is. One family a line, its choices separated by `|`."""
    found: dict[str, tuple[str, str]] = {}
    for line in lines.strip().splitlines():
        family, _, choices = line.partition(":")
        for words in map(str.split, choices.split("|")):
            found |= dict.fromkeys(words, (family, words[0]))
    return found


def _words(lines: str) -> frozenset[str]:
    return frozenset(lines.split())


def _first_words(lines: str) -> dict[str, str]:
    """By word, the first word of its line."""
    groups = [line.split() for line in lines.strip().splitlines()]
    return {word: group[0] for group in groups for word in group}


CHOICES: Mapping[str, tuple[str, str]] = _choices("""
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
""")
# Families whose differences are about time; those that a text never says by the way; those that may be left unsaid.
OF_TIME = frozenset(("day", "month", "season", "relative", "time", "often", "then", "still", "when"))
STRICT = OF_TIME | {"condition", "must", "more", "off", "place", "kin", "stop", "sure"}
UNSAID = frozenset(("whose", "way", "all"))
# Families of words that may be at another place in a sentence that says the same.
FLOATING = OF_TIME | {"unit", "way", "all", "condition", "whose", "side", "colour"}
DENIALS = _words("""
not no never nor neither nobody nothing cannot without nowhere hardly nicht kein keine keinen keiner keines nie niemals
ohne pas jamais sans aucun aucune nunca sin jamas ningun ninguna non mai senza nessun nessuna nao sem niet geen nooit
zonder inte ikke
""")
NUMBERS: Mapping[str, str] = _first_words("""
0 zero null
1 one eins once
2 two zwei deux dos twice
3 three drei trois tres thrice
4 four vier quatre cuatro quattro
5 five funf cinq cinco cinque
6 six sechs seis
7 seven sieben siete sette
8 eight acht huit ocho otto
9 nine neun neuf nueve nove
10 ten zehn dix diez dieci
11 eleven elf onze undici
12 twelve zwolf douze doce dodici dozen
13 thirteen dreizehn treize
14 fourteen vierzehn quatorze
15 fifteen funfzehn quinze
16 sixteen sechzehn seize
17 seventeen siebzehn
18 eighteen achtzehn
19 nineteen neunzehn
20 twenty zwanzig vingt veinte venti
30 thirty dreissig trente treinta trenta
40 forty vierzig quarante cuarenta
50 fifty funfzig cinquante cincuenta
60 sixty sechzig soixante
70 seventy siebzig
80 eighty achtzig
90 ninety neunzig
100 hundred hundert cent cien cento
1000 thousand tausend mille
1000000 million millionen
""")
# Words that say the same almost everywhere.
SYNONYMS: Mapping[str, str] = _first_words("""
leaves leave departs depart sails
need needs require requires
named called name titled
finish finished complete completed
use uses employ employs utilise utilises utilize utilizes
live lives reside resides dwell
stored store stores saved keep keeps kept
doctor physician
car automobile
phone telephone
photo photograph picture
film movie
flat apartment
holiday vacation
shop store
email e-mail
wifi wi-fi
website site homepage
folder directory
delete deletes remove removes
create creates make makes
repair repairs fix fixes
help helps assist assists
show shows display displays
get gets obtain obtains
reply replies answer answers respond responds
choose chooses select selects pick picks
build builds construct constructs
job work occupation
child kid
kids children
boss manager supervisor
company firm
town city
road street
about roughly approximately circa
wrong incorrect
correct right
error mistake
quiet silent
rich wealthy
hard difficult
easy simple
must shall
own owns possess possesses
hold holds contain contains
speak speaks talk talks
become becomes
place places put puts
state states mention mentions
check checks verify verifies
change changes alter alters modify modifies
happen happens occur occurs
try tries attempt attempts
bring brings carry carries
near nearby
spouse partner
lawyer attorney
teacher instructor
broke broken
chose chosen
drove driven
fell fallen
forgot forgotten
gave given
went gone
grew grown
knew known
rode ridden
saw seen
sang sung
spoke spoken
stole stolen
swam swum
threw thrown
wore worn
wrote written
flew flown
hid hidden
shook shaken
""")
# Words that say nothing by themselves; some only join, some only introduce.
SMALL = _words("""
a an the this that these those there here it its is are be am been being do does did has have would shall could and or
but so as at in on of for by with about also just very quite who which whose what where how such too o'clock please note
can may get gets got per than now then times both any
der die das den dem des ein eine einen einem einer und oder ist sind hat haben im um auf fur mit er sie es uhr
le la les un une du de et ou ne n avec sont ont au aux dans en il elle ils el los las una y o son ha han
lo gli e di del della da nel
""")
# What a phrase that may be at either end of a sentence begins with.
OPENERS = _words("in on at since from before after until during when if every each by for im am wenn seit vor")
# What makes a passive of the word behind it.
BE = _words("is are be been being get gets got was were")
