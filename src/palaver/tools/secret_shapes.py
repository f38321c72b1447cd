"""Shapes of secrets: tokens of common services, private keys, passwords in addresses, assignments to telling names.

Called by the redactor on what tools say. Pure: text in, text out, in linear time: every expression begins with a literal that
is looked for first, or is bounded, and none can match more than `LONGEST_CHARS`. All but private keys stay on one line.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from string import ascii_letters, digits

LONGEST_CHARS = 8_192
"""Of a token; JSON web tokens are the longest."""
LEADS = 64
"""Names that lead up to a secret one after the other, as far as they are followed."""
KEY_CHARS = 64 * 1024
"""Of a private key that is held back while it comes."""

_RUN = "A-Za-z0-9_.+/=%:@~-"
_RUN_CHARS = f"{ascii_letters}{digits}_.+/=%:@~-"
"""All characters of any token. One that is none of them ends it."""
_APART = r"(?<![A-Za-z0-9])"


@dataclass(frozen=True, slots=True)
class _Shape:
    label: str
    markers: tuple[str, ...]
    """One of them is in every text that the expression matches, in lower case unless `exact`."""
    pattern: re.Pattern[str]
    """Its group `secret`, or all of it, is struck."""
    exact: bool = True


def _tokens(label: str, rest: str, *prefixes: str) -> _Shape:
    """A prefix that nothing else has, and what follows it."""
    begin = "|".join(map(re.escape, prefixes))
    return _Shape(label, prefixes, re.compile(f"{_APART}(?:{begin}){rest}"))


_TELLING = (
    "token|secret|passw(?:or)?d|passphrase|passcode|pwd|credentials?|cookie|(?:api|access|private|signing"
    "|encryption|account|shared|master|auth|service|storage|client|palaver)[_-]?key|authorization|dsn|jwt"
    "|connection[_-]?string|_auth|(?<![a-z0-9_-])auth(?=\\\\?(?:[\"']|\\Z))"
    # Not in `compass`, `bypass` and the like.
    "|(?:(?<![a-z])|(?<=db)|(?<=pg)|(?<=user)|(?<=admin)|(?<=root))(?:pass|pw)(?=\\\\?[\"']?[ \t]{0,2}(?:[=:]|\\Z))"
)
_MARKERS = (
    *(
        "token",
        "secret",
        "passw",
        "passphrase",
        "passcode",
        "pwd",
        "credential",
        "cookie",
        "key",
        "authorization",
    ),
    *("dsn", "jwt", "connection", "bearer ", "basic ", "bearer\t", "basic\t", "auth", "pass", "pw"),
)
_NAME = rf"(?:{_TELLING})[A-Za-z0-9_-]{{0,20}}"
_GIVES = r"\\?[\"']?[ \t]{0,2}(?::=|=>|[=:])[ \t]{0,2}\\?[\"']?"
_SCHEME = r"(?:bearer|basic|token|apikey|api-key|digest|negotiate)[ \t]{1,2}"
_NOT_WITHIN = r"(?<![a-z0-9-])"
_OPTION = (
    rf"{_NOT_WITHIN}--(?:[a-z0-9]{{1,20}}-){{0,3}}(?:token|secret|passw(?:or)?d|passphrase|pass|api-?key|key|credentials?)"
    r"[ \t]{1,2}[\"']?"
)
_NETRC = r"(?m:^)[ \t]{0,8}password[ \t]{1,4}"
# Long enough, and with a letter and two digits among them: no word of a program or of prose.
_VALUE = (
    rf"(?=[{_RUN}]{{0,64}}?[A-Za-z])(?=[{_RUN}]{{0,64}}?[0-9][{_RUN}]{{0,64}}?[0-9])"
    rf"(?P<secret>[A-Za-z0-9_+=%~-][{_RUN}]{{11,4000}})"
)

_SEPARATOR = r"(?:\\[nr]|[\s>|→]|[0-9]{1,6}(?=[\t :|→])|[:+-](?=[ \tA-Za-z0-9+/])){1,24}+"
_KEY_BODY = (
    rf"(?:{_SEPARATOR}(?:Version|Comment|Proc-Type|DEK-Info|Hash|Charset): [^\r\n\\]{{0,200}}){{0,4}}+"
    rf"(?:{_SEPARATOR}[A-Za-z0-9+/=]{{16,4096}}+(?![{_RUN}])){{0,1000}}+"
)
_KEY_BEGIN = r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----"
_KEY_END = (
    rf"(?:(?:{_SEPARATOR}[A-Za-z0-9+/=]{{1,15}})?{_SEPARATOR}-----END [A-Z0-9 ]{{0,40}}PRIVATE KEY(?: BLOCK)?-----)?"
)
_KEY = re.compile(f"{_KEY_BEGIN}{_KEY_BODY}{_KEY_END}")
_OPEN_KEY = re.compile(
    r"-----BEGIN (?:[A-Z0-9 ]{0,60}-{0,5}"
    rf"|[A-Z0-9 ]{{0,40}}PRIVATE KEY(?: BLOCK)?-----{_KEY_BODY}[\s\\>|→,(){_RUN}]{{0,220}})\Z"
)

_PROGRAMS = "curl|wget|sshpass|mysql|mysqldump|mysqladmin|mariadb"
_LINE_CHARS = 340
"""From such a program's name to the end of a password that it is given."""
_WORD = r"(?![$<{*\[(])(?!(?:pass(?:word)?|token|secret|x{3,})(?![a-z0-9]))[^\s\"'<>|;&`]"
"""How a password begins that is none of a manual's."""
_GAP = r"[^\r\n|;&]{0,120}?"

_SHAPES = (
    _tokens("GitHub token", r"[A-Za-z0-9_]{22,255}", "ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_"),
    _tokens(
        "GitLab token", r"[A-Za-z0-9_-]{20,255}", "glpat-", "gldt-", "glrt-", "glcbt-", "glptt-", "glft-", "glsoat-"
    ),
    _tokens("Slack token", r"[A-Za-z0-9-]{10,255}", *(f"xox{kind}-" for kind in "abceoprs"), "xapp-"),
    _tokens("Slack webhook", r"[A-Za-z0-9/]{20,255}", "hooks.slack.com/services/"),
    _tokens("Stripe key", r"[A-Za-z0-9]{16,255}", "sk_live_", "sk_test_", "rk_live_", "rk_test_"),
    _tokens("webhook secret", r"[A-Za-z0-9+/=]{24,255}", "whsec_"),
    _tokens("npm token", r"[A-Za-z0-9]{36,255}", "npm_"),
    _tokens("PyPI token", r"[A-Za-z0-9_-]{50,500}", "pypi-"),
    _tokens("API key", r"(?=[A-Za-z_-]{0,100}[0-9])[A-Za-z0-9_-]{20,255}", "sk-", "gsk_", "xai-", "pplx-", "r8_"),
    _tokens("Hugging Face token", r"[A-Za-z0-9]{30,255}", "hf_", "api_org_"),
    _tokens("AWS key id", r"[A-Z2-7]{16}(?![A-Za-z0-9])", "AKIA", "ASIA", "ABIA", "ACCA"),
    _tokens("Google API key", r"[A-Za-z0-9_-]{35}", "AIza"),
    _tokens("Google token", r"[A-Za-z0-9_-]{20,2000}", "ya29.", "GOCSPX-", "1//0"),
    _tokens("Azure key", r"[A-Za-z0-9+/]{40,100}={0,2}", "AccountKey=", "SharedAccessKey=", "AccountKey%3D"),
    _Shape("Azure secret", ("Q~",), re.compile(r"(?<![A-Za-z0-9_.~-])[A-Za-z0-9_.~-]{3}[0-9]Q~[A-Za-z0-9_.~-]{31,34}")),
    _tokens("SendGrid key", r"[A-Za-z0-9_-]{22}\.[A-Za-z0-9_-]{43}", "SG."),
    _tokens("Telegram token", r"[0-9]{8,10}:AA[A-Za-z0-9_-]{33}", "bot"),
    _tokens("Vault token", r"[A-Za-z0-9_-]{24,300}", "hvs.", "hvb."),
    _tokens(
        "service token", r"[A-Za-z0-9_=-]{20,400}", "dop_v1_", "doo_v1_", "dor_v1_", "dckr_pat_", "dckr_oat_", "figd_"
    ),
    _tokens(
        "service token", r"[A-Za-z0-9_=.-]{20,400}", "lin_api_", "ntn_", "shpat_", "shpss_", "ATATT3", "glsa_", "sbp_"
    ),
    _tokens("service token", r"[A-Za-z0-9_=.-]{20,400}", "dp.pt.", "sntrys_", "rubygems_", "PMAK-", "EAACEdEose0cBA"),
    _tokens("Databricks token", r"[a-f0-9]{32}(?:-[0-9])?(?![A-Za-z0-9])", "dapi"),
    _tokens("age key", r"[0-9A-Z]{58}", "AGE-SECRET-KEY-1"),
    _tokens("web token", r"[A-Za-z0-9_-]{8,2000}\.eyJ[A-Za-z0-9_-]{4,4000}\.[A-Za-z0-9_-]{0,2000}", "eyJ"),
    _tokens(
        "service token",
        r"[A-Za-z0-9_=+/.-]{20,1000}",
        "ATCTT3",
        "ATBB",
        "nfp_",
        "fo1_",
        "fm1_",
        "fm2_",
        "fm1a_",
        "fm1r_",
    ),
    _tokens(
        "service token",
        r"[A-Za-z0-9_=+/.-]{20,1000}",
        "pscale_tkn_",
        "pscale_pw_",
        "pscale_oauth_",
        "ops_eyJ",
        "nvapi-",
    ),
    _tokens(
        "service token",
        r"[A-Za-z0-9_=+/.-]{20,1000}",
        "NRAK-",
        "NRII-",
        "HRKU-",
        "vercel_",
        "glc_",
        "squ_",
        "sqp_",
        "sqa_",
    ),
    _tokens(
        "service token", r"[A-Za-z0-9_-]{22,255}", "sq0atp-", "sq0csp-", "tskey-auth-", "tskey-api-", "tskey-client-"
    ),
    _tokens(
        "service token", r"[A-Za-z0-9_-]{22,255}", "bkua_", "bkct_", "bkpt_", "dp.st.", "dp.ct.", "dp.sa.", "dp.scim."
    ),
    _tokens("service token", r"[A-Za-z0-9]{36,64}(?![A-Za-z0-9])", "pul-"),
    _tokens("Square token", r"[A-Za-z0-9_-]{60}", "EAAA"),
    _tokens("Twilio key", r"[0-9a-f]{32}(?![A-Za-z0-9])", "SK"),
    _tokens("Mailgun key", r"[0-9a-f]{32}(?![A-Za-z0-9])", "key-"),
    _tokens("Airtable token", r"[A-Za-z0-9]{14}\.[A-Za-z0-9]{64,80}", "pat"),
    _tokens("page key", r"[A-Za-z0-9_.-]{16,255}", "palaver.key."),
    _Shape(
        "Terraform token", (".atlasv1.",), re.compile(rf"{_APART}[A-Za-z0-9]{{14}}\.atlasv1\.[A-Za-z0-9_=-]{{60,100}}")
    ),
    _Shape(
        "Discord token",
        (".",),
        re.compile(
            r"(?<![A-Za-z0-9_-])[MNO](?=[A-Za-z_-]{0,28}[0-9])[A-Za-z0-9_-]{23,28}\.[A-Za-z0-9_-]{6}\.[A-Za-z0-9_-]{27,45}"
        ),
    ),
    _Shape(
        "cookie", ("palaver_",), re.compile(rf"{_APART}palaver_[0-9]{{1,5}}=(?P<secret>[A-Za-z0-9_.=%~+/-]{{12,2000}})")
    ),
    _Shape("private key", ("-----BEGIN ",), _KEY),
    _Shape(
        "token",
        ("://",),
        re.compile(
            rf"https?://(?=[{_RUN}]{{0,64}}?[A-Za-z])(?=[A-Za-z_.%~+=-]{{0,64}}[0-9][A-Za-z_.%~+=-]{{0,64}}[0-9])"
            r"(?P<secret>[A-Za-z0-9_.%~+=-]{16,1000})(?=@)"
        ),
    ),
    _Shape(
        "password",
        ("curl", "wget"),
        re.compile(
            rf"(?i){_APART}(?:curl|wget){_GAP}[ \t](?:-u|--user|--proxy-user)[ \t=]{{0,2}}[\"']?[^\s:\"'$]{{1,64}}:"
            rf"(?P<secret>{_WORD}{{4,100}})"
        ),
        exact=False,
    ),
    _Shape(
        "password",
        ("sshpass", "mysql", "mariadb"),
        re.compile(
            rf"(?i){_APART}(?:sshpass[ \t]{{1,2}}-p[ \t]{{0,2}}|(?:mysql|mysqldump|mysqladmin|mariadb){_GAP}[ \t]-p)[\"']?"
            rf"(?P<secret>{_WORD}{{4,100}})"
        ),
        exact=False,
    ),
    _Shape(
        "password",
        ("login",),
        re.compile(
            rf"(?i){_APART}(?:machine[ \t]{{1,4}}[^\s]{{1,64}}|default)[ \t]{{1,4}}login[ \t]{{1,4}}[^\s]{{1,64}}"
            rf"[ \t]{{1,4}}password[ \t]{{1,4}}(?P<secret>{_WORD}{{1,100}})"
        ),
        exact=False,
    ),
    _Shape(
        "password",
        (">",),
        re.compile(
            r"(?i)<(?:[a-z0-9]{1,20}[_-]){0,2}(?:password|passwd|passphrase|pwd|token|secret|(?:api|access|private|secret)-?_?key)>"
            r"(?![$<{*\[(])(?P<secret>[^\s<>]{4,100})(?=</)"
        ),
    ),
    _Shape(
        "password",
        ("://",),
        re.compile(
            r"(?<![A-Za-z0-9+.-])[A-Za-z][A-Za-z0-9+.-]{0,30}://[^\s/?#@:'\"]{0,200}:"
            r"(?![$<{*\[])(?P<secret>[^\s/'\"<>]{1,255})(?=@)"
        ),
    ),
    _Shape(
        "parameter",
        ("?", "&", "#"),
        re.compile(
            r"(?i)[?&#](?:access_?token|auth|api_?key|key|token|sig|signature|password|secret|x-amz-signature"
            r"|x-amz-security-token|code)=(?P<secret>[A-Za-z0-9_.%~+/-]{12,2000})"
        ),
    ),
    _Shape(
        "secret",
        _MARKERS,
        re.compile(
            rf"(?i)(?:{_NAME}{_GIVES}(?:{_SCHEME})?|{_APART}(?:bearer|basic)[ \t]{{1,2}}|{_OPTION}|{_NETRC}){_VALUE}"
        ),
        exact=False,
    ),
)

# Whatever stands before a name, what is struck before it may leave the name apart.
_OPEN_TELLING = re.sub(r"\(\?<[!=][^)]*\)", "", _NAME)
_LEADS = rf"(?:bearer|basic)[ \t]{{1,2}}|{_OPTION.removeprefix(_NOT_WITHIN)}|{_NETRC}"
_GIVING_NAME = re.compile(rf"(?i)(?:{_OPEN_TELLING}{_GIVES}(?:{_SCHEME})?|{_LEADS})\Z")
_OPEN_NAME = re.compile(rf"(?i)(?:{_OPEN_TELLING}(?:\\?[\"']?[ \t]{{0,2}}|{_GIVES}(?:{_SCHEME})?)|{_LEADS})\Z")
_OPEN_LINE = re.compile(
    rf"(?i)(?:(?:{_PROGRAMS}|machine|default)[^\r\n]{{0,{_LINE_CHARS}}}|<(?:[a-z0-9_-]{{1,60}}>[^\s<>]{{0,100}}<?)?)\Z"
)
"""A line of a program that takes passwords, or an element, as far as it has come."""
_NAME_CHARS = 120
_LOOK_BACK_CHARS = _LINE_CHARS + 60


def strike_shapes(text: str) -> str:
    lower = text.casefold()
    for shape in _SHAPES:
        within = text if shape.exact else lower
        if any(marker in within for marker in shape.markers):
            text = shape.pattern.sub(_stand_in(shape), text)
    return text


def _stand_in(shape: _Shape) -> Callable[[re.Match[str]], str]:
    words = f"[redacted {shape.label}]"
    if "secret" not in shape.pattern.groupindex:
        return lambda _: words
    return lambda found: found[0][: found.start("secret") - found.start()] + words


def open_from(text: str) -> int:
    """From where on the text, to its end, may be the beginning of a secret whose shape is not yet to be seen."""
    run = max(len(text.rstrip(_RUN_CHARS)), len(text) - LONGEST_CHARS)
    if not text[run:].strip("."):
        # Progress is often shown so, and no secret begins with a dot.
        run = len(text)
    found = run
    word = _word_start(text, len(text))
    if "://" in text[word:]:
        # A password in an address may hold any character.
        found = min(found, word)
    # What leads up to a secret may be part of another: `a_key = b_key = …`, or a line of a private key.
    for _ in range(LEADS):
        if found <= len(text) - KEY_CHARS:
            break
        earlier = _key_around(text, _name_before(text, found))
        if earlier == found:
            break
        found = earlier
    return found


def _name_before(text: str, place: int) -> int:
    begin = max(0, place - _NAME_CHARS)
    is_given = text[place : place + 1] not in ("", "=", ":")
    name = (_GIVING_NAME if is_given else _OPEN_NAME).search(text[begin:place])
    found = begin + name.start() if name else place
    begin = max(0, place - _LOOK_BACK_CHARS)
    line = _OPEN_LINE.search(text[begin:place])
    if line:
        found = min(found, begin + line.start())
    return _word_start(text, found) if found < place else place


def _key_around(text: str, place: int) -> int:
    key = text.rfind("-----BEGIN ", max(0, place - KEY_CHARS), place)
    if key < 0:
        return place
    closed = _KEY.match(text, key)
    is_open = (closed is not None and closed.end() > place) or _OPEN_KEY.match(text, key) is not None
    return _word_start(text, key) if is_open else place


def _word_start(text: str, place: int) -> int:
    """Behind the last blank before a place: what leads up to it may be a secret of another shape."""
    begin = max(0, place - LONGEST_CHARS)
    return max(begin, *(text.rfind(blank, begin, place) + 1 for blank in " \t\r\n"))
