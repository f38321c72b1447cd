"""Names that tell of a secret: of environment variables, settings, headers and JSON fields.

Called by the redactor for the environment and by what strikes secrets from settings. Pure. A name is read as words: parted
by case and by everything that is no letter. Within a word a telling part counts where it is none of a common word.
"""

import re
from functools import lru_cache

_ANYWHERE = re.compile(
    r"TOKEN(?!I[SZ])|SECRET(?!AR)|PASSWOR[DT]|PASSWD|PASSPHRASE|PASSCODE|CREDENTIAL|COOKIE(?!CUTTER)|MNEMONIC"
    r"|CONNECTION_?STR|CONN_STR|WEBHOOK(?:_?URL)?S?(?:_|\d|$)|UNSEAL|(?:SEED|RECOVERY|BACKUP)_?(?:PHRASE|WORD|CODE)S?|TOTP"
    r"|(?:OTP|WALLET)_?SEED|AUTH_?(?:HEADER|CONFIG|KEY|DATA)|KUBE_?CONFIG_(?:DATA|CONTENTS?|B64|BASE64)|NETRC_CONTENTS?"
    r"|SERVICE_?ACCOUNT_(?:JSON|INFO|KEY)|ID_(?:RSA|ED25519|ECDSA)(?:_|$)|PRIV(?:ATE)?_?KEY"
)
"""In names as words joined by underscores, in capitals."""
_PART_END = re.compile(r"(?:KEY|JWT|DSN|SIGNATURE|AUTHORIZATION|BEARER|PAT|CREDS?)S?(?:_|\d|$)")
"""At the end of any word."""
_LAST = re.compile(
    r"(?:PASS|PW|PWD)\d*$|(?:^|_)(?:AUTH|SESSION_?ID|SESSION|SAS|OTP|SALTS?|PEPPER|HMAC|PEM|CREDS?|HEADERS?)(?:_?\d+)?$"
)
"""At the end of the name."""
_COMMON = re.compile(
    r"(?:^|_)(?:[A-Z0-9]{0,24}(?:COM|BY|TRES|SUR|UNDER|OVER|TRANS)PASS|BYPASS|COMPAT|EXPAT|SPAT|MONKEY|TURKEY|DONKEY|HOCKEY|JOCKEY|WHISKEY"
    r"|HOTKEY|SACRED)(?=S?(?:_|\d|$))"
)
"""Words that end like a telling one."""
_SHELLS_OWN = frozenset({"PWD", "OLDPWD"})
_PATH_NAME = re.compile(r"(?:^|_)(?:FILE|PATH|DIR|SOCK|SOCKET|CREDENTIALS|FOLDER|CONFIG)$")
_CASE = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_NO_LETTER = re.compile(r"[^A-Z0-9]+")


@lru_cache(maxsize=1024)
def is_telling(name: str) -> bool:
    words = _words(name)
    if words in _SHELLS_OWN:
        return False
    # As it stands too: `ConnectionStrings`, `PassWord`.
    for joined in {words, _NO_LETTER.sub("_", name.upper()).strip("_")}:
        rest = _COMMON.sub("", joined)
        if _ANYWHERE.search(rest) or _PART_END.search(rest) or _LAST.search(rest):
            return True
    return False


def names_a_file(name: str) -> bool:
    """`SSH_AUTH_SOCK`, `GOOGLE_APPLICATION_CREDENTIALS`: such a name often gives the file, which is no secret."""
    return _PATH_NAME.search(_words(name)) is not None


def _words(name: str) -> str:
    return _NO_LETTER.sub("_", _CASE.sub("_", name).upper()).strip("_")
