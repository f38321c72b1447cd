"""Secrets that commands print: struck by value, by name and by shape, encoded or not, however the output is cut."""

import base64
import json
from pathlib import Path
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from palaver.tools.base import ToolResult
from palaver.tools.redact import Redactor
from palaver.tools.shell.sandbox import unsandboxed
from palaver.tools.shell.shell import Shell
from palaver.tools.toolbox import Toolbox

R = "a1B2c3D4e5F6g7H8i9J0" * 8
"""Stands for what is random in a token. No token is written down here as a whole."""
SHAPES = {
    **{f"gh{kind}_": R[:36] for kind in "pousr"},
    "github_pat_": R[:82],
    "glpat-": R[:20],
    "xoxb-": "123456789012-" + R[:24],
    "xapp-": "1-A0-" + R[:40],
    "https://hooks.slack.com/services/": "T00000000/B00000000/" + R[:24],
    "sk_live_": R[:24],
    "rk_test_": R[:24],
    "whsec_": R[:32],
    "npm_": R[:36],
    "pypi-": "AgEIcHlwaS5vcmc" + R[:60],
    "sk-": R[:48],
    "sk-ant-": "api03-" + R[:80],
    "sk-proj-": R[:80],
    "hf_": R[:34],
    "AKIA": "ABCDEFGH" * 2,
    "ASIA": "ABCDEFGH" * 2,
    "AIza": R[:35],
    "ya29.": R[:60],
    "GOCSPX-": R[:28],
    "AccountName=x;AccountKey=": R[:86] + "==",
    "SG.": R[:22] + "." + R[:43],
    "hvs.": R[:24],
    "dop_v1_": "0a" * 32,
    "dckr_pat_": R[:27],
    "lin_api_": R[:40],
    "AGE-SECRET-KEY-1": "ABCDEFGH90" * 5 + "ABCDEFGH",
    "eyJ": f"hbGciOiJIUzI1NiJ9.eyJ{R[:40]}.{R[:43]}",
    "ATCTT3": R[:150],
    "ATBB": R[:32],
    "MTA0": R[:20] + ".GaBcDe." + R[:38],
    "SK": "0a" * 16,
    "key-": "0a" * 16,
    "sq0atp-": R[:22],
    "EAAA": R[:60],
    f"{R[:14]}.atlasv1.": R[:67],
    "nfp_": R[:36],
    "fo1_": R[:43],
    "FlyV1 fm2_": R[:80],
    "pscale_tkn_": R[:43],
    f"pat{R[:14]}.": "0a" * 32,
    "NRAK-": R[:27].upper(),
    "tskey-auth-": f"k{R[:16]}-{R[:32]}",
    "ops_eyJ": R[:120],
    "pul-": "0a" * 20,
    "bkua_": "0a" * 20,
    "nvapi-": R[:64],
    "dp.st.": R[:40],
    "palaver.key.": R[:43],
}
ASSIGNMENTS = [
    "{name}={value}",
    "export {name}={value}",
    '{name}="{value}"',
    "{name} = {value}",
    "{name}: {value}",
    '"{name}": "{value}"',
    "'{name}' : '{value}'",
    "--{name}={value}",
    "{name} := {value}",
    '{name} := "{value}"',
    "{name} => '{value}'",
    r"{{\"{name}\":\"{value}\"}}",
]
NAMES = (
    *("API_TOKEN", "db_password", "aws_secret_access_key", "CLIENT_SECRET", "Set-Cookie", "passphrase"),
    *("apiKey", "access-key", "PRIVATE_KEY", "credential", "SENTRY_DSN", "jwt", "PGPASSWD", "MYSQL_PWD"),
    *("FOO_PASS", "PASS", "DBPASS", "db_pw", "PGPASS", "client-key-data", "Palaver-Key", "_auth", "smtp_pass"),
)


@pytest.mark.parametrize(("prefix", "rest"), SHAPES.items(), ids=list(SHAPES))
@pytest.mark.parametrize(
    "around", ["{0}", "a {0} b", "'{0}'", "https://x:{0}@host/", "Authorization: Bearer {0}", "x={0};"]
)
def test_token_of_a_common_service_is_struck(prefix: str, rest: str, around: str) -> None:
    said = Redactor({}).redact(around.format(prefix + rest))
    assert rest not in said
    assert "[redacted " in said


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("form", ASSIGNMENTS)
def test_value_that_a_telling_name_is_given_is_struck(name: str, form: str) -> None:
    value = R[:24]
    said = Redactor({}).redact(form.format(name=name, value=value))
    assert value not in said
    assert name in said


V = R[:24]
FORMS = {
    "user of an address": "git clone https://{0}@github.com/a/b",
    "scheme of its own": "Authorization: ApiKey {0}",
    "cookie of ours": "Cookie: palaver_8420=id.owner.1.2.{0}",
    "page key": "Sec-WebSocket-Protocol: palaver, palaver.key.{0}",
    "sign-in code": "http://127.0.0.1:8420/#code={0}",
    "option": "tool --token {0} run",
    "quoted option": 'tool --github-api-key "{0}"',
    "curl": "curl -sS -u ada:{0} https://h.example/",
    "curl, quoted": "curl --user 'ada:{0}' https://h.example/",
    "wget": "wget --user=ada:{0} https://h.example/",
    "sshpass": "sshpass -p {0} ssh host",
    "sshpass, quoted": "sshpass -p '{0}' ssh host",
    "mysql": "mysql -uroot -p{0} garden",
    "export": "export FOO_PASS={0}",
    "netrc": "machine h.example login ada password {0}",
    "netrc in lines": "machine h.example\n  login ada\n  password {0}",
    "element": "<password>{0}</password>",
    "element of a family": "<db-api-key>{0}</db-api-key>",
    "docker": '{{"auths": {{"h": {{"auth": "{0}"}}}}}}',
    "docker, escaped": r"{{\"auths\": {{\"h\": {{\"auth\": \"{0}\"}}}}}}",
    "npmrc": "//registry.example/:_auth={0}",
    "kubeconfig": "    client-key-data: {0}",
}


@pytest.mark.parametrize("form", FORMS)
def test_secret_is_struck_where_its_place_tells_of_it(form: str) -> None:
    text = f"before\n{FORMS[form].format(V)}\nafter"
    said = Redactor({}).redact(text)
    assert V not in said
    assert (said.startswith("before\n"), said.endswith("\nafter")) == (True, True)
    stream = Redactor({}).stream()
    assert "".join([stream.feed(char) for char in text]) + stream.finish() == said


@pytest.mark.parametrize("password", ["hunter2", "p!ss:w0rd", "correct-horse", "a%20b"])
@pytest.mark.parametrize("form", ["curl", "wget", "sshpass", "sshpass, quoted", "mysql", "netrc", "element"])
def test_password_that_is_no_token_is_struck_where_its_place_tells_of_it(form: str, password: str) -> None:
    assert password not in Redactor({}).redact(FORMS[form].format(password))


@pytest.mark.parametrize("name", ["session", "session_id", "sessionId", "id", "conversation", "commit"])
def test_id_is_no_secret(name: str) -> None:
    said = f'"{name}": "01a1ef82-a6d5-71f6-b200-1229b84a251b"'
    assert Redactor({}).redact(said) == said


@pytest.mark.parametrize(
    "address",
    [
        "postgres://ada:{0}@db:5432/x",
        "redis://:{0}@host",
        "mongodb+srv://u:{0}@h.example/?a=b",
        "https://ada:{0}@h/",
        "amqp://a:{0}@h",
    ],
)
@pytest.mark.parametrize("password", ["hunter2", "p@ss:w0rd!", "a%20b", "correct-horse"])
def test_password_in_an_address_is_struck_and_its_host_is_not(address: str, password: str) -> None:
    said = Redactor({}).redact(f"connecting to {address.format(password)} now")
    assert password not in said
    assert said.endswith(" now")
    assert "@" in said


@pytest.mark.parametrize("kind", ["", "RSA ", "EC ", "OPENSSH ", "ENCRYPTED "])
@pytest.mark.parametrize("between", ["\n", "\r\n", "\\n", "\n  ", "\n     7\t", "\n> "])
def test_private_key_is_struck_however_its_lines_are_shown(kind: str, between: str) -> None:
    lines = [f"-----BEGIN {kind}PRIVATE KEY-----", R[:64], R[:64], R[:9] + "==", f"-----END {kind}PRIVATE KEY-----"]
    said = Redactor({}).redact(f"before\n{between.join(lines)}\nafter")
    assert R[:9] not in said
    assert (said.startswith("before\n"), said.endswith("\nafter")) == (True, True)
    assert R[:20] not in Redactor({}).redact(between.join(lines[:3]))


NAMES_OF_THE_ENVIRONMENT = (
    *(
        "GITHUB_TOKEN",
        "OPENAI_API_KEY",
        "DB_PASSWORD",
        "DB_PASSWD",
        "PGPASSWORD",
        "SSH_PASSPHRASE",
        "MYSQL_PWD",
        "SMTP_PASS",
    ),
    *(
        "AWS_CREDENTIALS",
        "LOGIN_COOKIE",
        "SESSION_ID",
        "SENTRY_DSN",
        "AZURE_CONNECTION_STRING",
        "AUTH_JWT",
        "SLACK_WEBHOOK_URL",
    ),
    *("TOKENS", "client_secret_2", "REDISCLI_AUTH", "HTTP_AUTHORIZATION", "GITLAB_PAT"),
    *("DBPASS", "PGPASS", "USERPASS", "DB_PW", "ADMIN_PW", "ROOT_PW", "LDAP_BIND_PW", "LDAP_BINDPW", "DB_PASS2"),
    *(
        "SLACK_WEBHOOK",
        "DISCORD_WEBHOOK",
        "AWS_CREDS",
        "GCP_CREDS",
        "CREDS",
        "SAS",
        "AZURE_SAS",
        "HMAC",
        "VAULT_UNSEAL",
    ),
    *(
        "AZURE_STORAGE_CONNECTIONSTRING",
        "CONNECTIONSTRING",
        "ConnectionStrings__Default",
        "MNEMONIC",
        "WALLET_MNEMONIC",
    ),
    *("SEED_PHRASE", "TOTP", "TOTP_SEED", "OTP", "OTP_SEED", "RECOVERY_CODE", "SALT", "ENCRYPTION_SALT", "AUTH_HEADER"),
    *("HTTP_HEADERS", "ANTHROPIC_CUSTOM_HEADERS", "SERVICE_ACCOUNT_JSON", "DOCKER_AUTH_CONFIG", "KUBECONFIG_DATA"),
    *(
        "TLS_PEM",
        "CERT_PEM",
        "ID_RSA",
        "dbPassword",
        "authToken",
        "MYTOKENVALUE",
        "clientSecret",
        "AUTHTOKEN",
        "MASTERKEY",
    ),
)


@pytest.mark.parametrize("name", NAMES_OF_THE_ENVIRONMENT)
def test_value_of_a_variable_with_a_telling_name_is_struck_in_every_encoding(name: str) -> None:
    value = 'it is/a+se"cret?\u00e9&'
    redactor = Redactor({name: value})
    basic = base64.b64encode(f"ada:{value}".encode()).decode()
    forms = [
        value,
        quote(value),
        quote(value, safe=""),
        quote_plus(value),
        json.dumps(value),
        json.dumps(value, ensure_ascii=False),
        base64.b64encode(value.encode()).decode(),
        base64.urlsafe_b64encode(value.encode()).decode(),
        *(base64.b64encode(f"{'x' * count}{value}yz".encode()).decode() for count in range(6)),
        basic,
    ]
    for form in forms:
        said = redactor.redact_values(f"<{form}>")
        assert f"[redacted {name}]" in said, form
        assert len(said) < len(f"<[redacted {name}]>") + 18


def test_password_in_an_address_of_the_environment_is_struck_wherever_it_appears() -> None:
    redactor = Redactor({"DATABASE_URL": "postgres://ada:correct-horse@db/x"})
    assert redactor.redact("it is correct-horse") == "it is [redacted DATABASE_URL]"


NO_SECRETS = (
    *(
        "COMPASS",
        "BYPASS",
        "TRESPASS",
        "NO_BYPASS",
        "GLIBC_COMPAT",
        "MONKEY",
        "KEYBOARD_LAYOUT",
        "TOKENIZERS_PARALLELISM",
    ),
    *(
        "SECRETARY",
        "PASSENGER_COUNT",
        "PWD",
        "OLDPWD",
        "AUTHOR",
        "GIT_AUTHOR_NAME",
        "AUTH_METHOD",
        "OTP_VERSION",
        "PATH",
    ),
    *("SALT_MASTER", "SEED", "HEADERS_ONLY_MODE", "COOKIECUTTER_TEMPLATE", "PEM_EDITOR", "PATTERN", "PASSTHROUGH"),
)


@pytest.mark.parametrize("name", NO_SECRETS)
def test_value_of_a_variable_with_an_ordinary_name_stays(name: str) -> None:
    assert Redactor({name: "an-ordinary-value"}).redact("an-ordinary-value") == "an-ordinary-value"


@pytest.mark.parametrize(
    "value", ["/wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY", "/abcdEFGHijkl", "//8AAAD/+zz/Q==", "/a/b/c/d/e"]
)
def test_secret_that_looks_like_a_path_is_struck(value: str) -> None:
    said = Redactor({"AWS_SECRET_ACCESS_KEY": value}).redact(f"it is {value}")
    assert said == "it is [redacted AWS_SECRET_ACCESS_KEY]"


@given(st.binary(min_size=30, max_size=30))
@settings(deadline=None)
def test_no_random_secret_is_taken_for_a_path(data: bytes) -> None:
    secret = "/" + base64.b64encode(data).decode()
    assert secret not in Redactor({"A_SECRET": secret}).redact_values(f"it is {secret}")


@pytest.mark.parametrize(
    "name", ["SSH_AUTH_SOCK", "GOOGLE_APPLICATION_CREDENTIALS", "DB_PASSWORD_FILE", "TOKEN_PATH", "SECRETS_DIR"]
)
def test_name_of_a_file_gives_a_path(name: str) -> None:
    """Whether the file is there or not."""
    assert Redactor({name: "/nowhere/to/be-found"}).redact("/nowhere/to/be-found") == "/nowhere/to/be-found"


def test_path_of_something_that_exists_is_no_secret(tmp_path: Path) -> None:
    assert Redactor({"A_KEY": str(tmp_path)}).redact(str(tmp_path)) == str(tmp_path)


WITHIN = {
    "connection string": ("CONNECTIONSTRING", "Server=db.example;User Id=ada;Password={0};Encrypt=true"),
    "headers": ("HTTP_HEADERS", "X-Team: garden\nAuthorization: Bearer {0}"),
    "list of headers": ("OTEL_HEADERS", "x-team=garden,x-api-key={0}"),
    "service account": ("SERVICE_ACCOUNT_JSON", '{{"type": "service_account", "private_key_id": "{0}"}}'),
    "docker": ("DOCKER_AUTH_CONFIG", '{{"auths": {{"registry.example": {{"auth": "{0}"}}}}}}'),
    "parameter": ("SERVICE_URL", "https://h.example/v1?team=garden&api_key={0}"),
    "user": ("REPOSITORY_URL", "https://{0}@h.example/a.git"),
    "second address": ("HOSTS", "postgres://a:first-password@h,postgres://b:{0}@h"),
}


@pytest.mark.parametrize("kind", WITHIN)
def test_secret_within_a_value_is_struck_by_itself(kind: str) -> None:
    name, value = WITHIN[kind]
    assert Redactor({name: value.format(V)}).redact_values(f"it is {V}!") == f"it is [redacted {name}]!"


def test_hexadecimal_form_is_struck() -> None:
    form = b"it is/a+secret".hex()
    redactor = Redactor({"A_TOKEN": "it is/a+secret"})
    assert form not in redactor.redact_values(f"x{form}x")
    assert form.upper() not in redactor.redact_values(form.upper())


ORDINARY = (
    *("a compass=north-by-northwest-42-1 bypass=true1234567890", "docker run -u 1000:1000 image", "ls -u a:b"),
    *(
        "curl -u user:password https://h",
        "curl -u $USER:$PASSWORD https://h",
        "curl https://h.example:8080/a -o out.txt",
    ),
    *("mysql -proot garden".replace("-proot", "--port=3306"), "sshpass -p $PASS ssh h", "<password></password>"),
    *(
        "<token>{{ token }}</token>",
        "the login page password field",
        "--token is required",
        "--key VALUE",
        "--password=",
    ),
    *(
        "https://renovate@github.com",
        "mailto:ada12@example.org",
        "see https://h.example/a#code-of-conduct",
        "auth: none",
    ),
    *("token := next()", "key => value", '{"auth": null}', '"auth": "required"', "M12.5.3 Notes.of.release-2.0"),
    *("<pass>fail</pass>", "pass=3 fail=4", "patch.diff and path.py", "key-value store", "SK and EAAA", "pul-up bar"),
)


@pytest.mark.parametrize("text", ORDINARY)
def test_ordinary_line_stays_as_it_is(text: str) -> None:
    assert Redactor({}).redact(text) == text


def test_ordinary_text_stays_as_it_is() -> None:
    root = Path(__file__).parents[2]
    texts = [
        "/home/ada /run/user/1000/ssh.sock https://example.org:8080/a?b=c&page=2 user@example.org git@github.com:a/b.git",
        "token = next(tokens)  # the key of the session\npassword: str | None = None\nkey=lambda row: row.id",
        "sha256:" + "0a" * 32 + "\ncommit " + "0a" * 20,
        "curl http://localhost:3000/api/v1 | jq .token",
        "https://user:$PASSWORD@host https://user:<password>@host",
        (root / "src/palaver/approval/policy.py").read_text(),
        (root / "src/palaver/faces/stream/answer.py").read_text(),
    ]
    texts += [
        path.read_text()
        for folder in ("core", "faces", "tools")
        for path in (root / "src/palaver" / folder).rglob("*.py")
    ]
    texts += [path.read_text() for path in (root / "docs").glob("*.md")]
    environment = {"SSH_AUTH_SOCK": "/run/user/1000/ssh.sock", "HOME": "/home/ada", "PWD": "/home/ada/garden"}
    for text in texts:
        assert Redactor(environment).redact(text) == text


PARTS = (
    *(prefix + rest for prefix, rest in SHAPES.items()),
    *(
        f"TOKEN={R[:20]}",
        f"secret = {R[:20]}",
        f'"apiKey": "{R[:20]}"',
        f"Authorization: Bearer {R[:30]}",
        f"Basic {R[:30]}",
    ),
    *(f"https://a:{R[:8]}@h/", "postgres://u:p!w@h", "https://h:80/", "://", "a..b", "....", "hunter-two-and-more"),
    *(
        "-----BEGIN RSA PRIVATE KEY-----\n",
        f"{R[:64]}\n",
        f"{R[:7]}=\n",
        "-----END RSA PRIVATE KEY-----\n",
        "-----BEGIN ",
    ),
    *(" ", "\n", "\t", "=", ":", '"', "'", "-", "_", "?", "&", "x", "key", "token", "\\n", "\u00e9", "]"),
    *(
        "curl ",
        "-u ",
        "a:",
        "sshpass ",
        "-p ",
        "mysql ",
        "-p",
        "login ",
        "ada ",
        "password ",
        "--token ",
        "=> ",
        ":= ",
        "\\",
    ),
    *(
        "<password>",
        "</password>",
        "<",
        ">",
        "|",
        "hunter2",
        "p!w",
        "https://",
        "@h/",
        "#code=",
        '"auth"',
        "FOO_PASS=",
        "pw",
    ),
    *(form.format(V) for form in FORMS.values()),
)


@given(st.lists(st.sampled_from(PARTS), max_size=12).map("".join), st.data())
@settings(max_examples=400, deadline=None)
def test_stream_says_what_the_whole_text_would_however_it_is_cut(text: str, data: st.DataObject) -> None:
    cuts = sorted(data.draw(st.lists(st.integers(0, len(text)), max_size=8)))
    redactor = Redactor({"A_TOKEN": "hunter-two-and-more"})
    stream = redactor.stream()
    pieces = [text[begin:end] for begin, end in zip([0, *cuts], [*cuts, len(text)], strict=True)]
    assert "".join([stream.feed(piece) for piece in pieces]) + stream.finish() == redactor.redact(text)


@pytest.mark.parametrize(("prefix", "rest"), SHAPES.items(), ids=list(SHAPES))
def test_token_that_comes_letter_by_letter_is_struck(prefix: str, rest: str) -> None:
    stream = Redactor({}).stream()
    said = "".join([stream.feed(char) for char in f"it is {prefix}{rest}\n"]) + stream.finish()
    assert rest not in said


def test_progress_and_finished_lines_are_not_held_back() -> None:
    stream = Redactor({}).stream()
    assert stream.feed("compiling ....") == "compiling ...."
    assert stream.feed("....") == "...."
    assert stream.feed(" done [####  ]\n") == " done [####  ]\n"


@pytest.mark.anyio
async def test_approval_shows_a_command_whole_that_looks_like_a_secret(tmp_path: Path) -> None:
    """A shape could hide what runs: `a://b:$(x)@c` is a password to the redactor and a command to the shell."""
    box = Toolbox(tools={"shell": Shell(unsandboxed())}, environment={"A_TOKEN": "hunter-two-and-more"})
    command = "echo a://b:$(touch${IFS}x)@c token=" + R[:20]
    proposal = await box.propose("shell", {"command": command}, tmp_path)
    assert not isinstance(proposal, ToolResult)
    assert proposal.preview == command
