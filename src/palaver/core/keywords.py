"""Which words of a text tell what it is about. Pure; used to recall earlier conversations and notes.

A word is compared without case and accents. What nearly every sentence holds is left out, in the languages most often
written here; in any other language the index itself shows which words are common.
"""

import re
import unicodedata

WORD = re.compile(r"[^\W_]+")
"""Letters and digits, as the index cuts text."""
READ_CHARS = 4_000
"""Of a long text its beginning and its end say what it is about."""
LEAST_CHARS = 3
"""Shorter Latin words tell nothing; an ideograph may be a word."""

_COMMON = """
a about above after again against all also am an and any are aren as at be because been before being below between
both but
by can cannot could couldn did didn do does doesn doing don down during each else even ever every few file files
first for
from further get gets give go goes going got had has have having he hello her here hers hey hi him his how however i
if in
into is isn it its itself just know let like look looks make makes many may maybe me mean might more most much must
my need
never new next no nor not nothing now of off ok okay on once one only or other ought our ours out over own please put
really
right said same say see she should shouldn show since so some something still such sure take tell than thank thanks
that the
their them then there these they thing things think this those through to together too try two under until up upon us
use
used using very want wants was wasn way we well were weren what when where which while who whom why will with without
won
work works would wouldn write yes yet you your yours yourself
answer begin continue cool course done exactly fine good great nice perfect proceed question ready retry start stop
aber alle allem allen aller alles als also am an ander andere auch auf aus bei bin bis bist bitte da damit dann das
dass dein
deine dem den denn der des dich die dies diese diesem diesen dieser dieses dir doch dort du durch ein eine einem
einen einer
eines er es etwas euch für gegen gewesen hab habe haben hat hatte hier hin hinter ich ihm ihn ihr ihre im in ist ja
jede
jedem jeden jeder jedes jetzt kann kein keine können könnte machen man mehr mein meine mich mir mit muss nach nein
nicht
nichts noch nun nur ob oder ohne schon sehr sein seine sich sie sind so soll sollte sondern sonst über um und uns
unser
unter viel mach mache weiter fertig genau gut danke gerne vom von vor war waren warum was weil welche wenn wer werden
wie wieder will wir wird wo wurde würde zu zum zur
zwar zwischen
alors au aucun aussi autre aux avec avoir bon ce cela ces cet cette comme dans de des donc du elle elles en est et
être eu
faire fait il ils je la le les leur lui ma mais me même mes moi mon ne nos notre nous on ou où par pas peut plus pour
pourquoi qu quand que quel qui sa sans se ses si son sont sur ta te tes toi ton tous tout très tu un une vos votre
vous
al algo como con cual cuando del desde donde dos el ella ellas ellos en entre era es esa ese eso esta estaba este
esto estoy
fue ha hacer hasta hay la las lo los más me mi muy nada ni no nos nosotros o otra otro para pero poco por porque que
quien
se ser si sin sobre son su sus también te tiene todo tu un una uno y ya yo
"""


def plain(word: str) -> str:
    """A word without case and accents."""
    if word.isascii():
        return word.lower()
    parts = unicodedata.normalize("NFKD", word.casefold())
    return "".join(part for part in parts if not unicodedata.combining(part))


COMMON = frozenset(plain(word) for word in _COMMON.split())


def words_of(text: str) -> list[str]:
    """All its words, in order, as they are compared."""
    return [plain(word) for word in WORD.findall(text)]


def telling_words(text: str, limit: int) -> list[str]:
    """The words that say most, each once, the longest first: a long word is seldom a common one."""
    if len(text) > READ_CHARS:
        half = READ_CHARS // 2
        text = f"{text[:half]} {text[-half:]}"
    seen = dict.fromkeys(word for word in words_of(text) if word not in COMMON and _says_something(word))
    return sorted(seen, key=len, reverse=True)[:limit]


def _says_something(word: str) -> bool:
    if word.isascii():
        return len(word) >= LEAST_CHARS and not (word.isdigit() and len(word) < LEAST_CHARS + 1)
    return len(word) > 1 or ord(word) >= 0x2E80
