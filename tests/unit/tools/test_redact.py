"""Secrets are struck from text, however a stream is cut into pieces."""

from hypothesis import given
from hypothesis import strategies as st

from palaver.tools.redact import Redactor


def test_values_of_secret_variables_are_replaced_by_their_names() -> None:
    redactor = Redactor(
        {
            "OPENAI_API_KEY": "sk-123456789",
            "GITHUB_TOKEN": "ghp_abcdefgh",
            "DB_PASSWORD": "hunter2hunter2",
            "CLIENT_SECRET_2": "two-secrets",
            "APIKEY": "no-underscore",
        }
    )
    assert (
        redactor.redact("curl -H 'Authorization: sk-123456789'") == "curl -H 'Authorization: [redacted OPENAI_API_KEY]'"
    )
    assert redactor.redact("ghp_abcdefgh hunter2hunter2") == "[redacted GITHUB_TOKEN] [redacted DB_PASSWORD]"
    assert redactor.redact("two-secrets no-underscore") == "[redacted CLIENT_SECRET_2] [redacted APIKEY]"


def test_ordinary_variables_and_short_values_are_left_alone() -> None:
    redactor = Redactor(
        {"HOME": "/home/ada-lovelace", "KEYBOARD_LAYOUT": "colemak-dh", "DEBUG_TOKEN": "true", "A_KEY": ""}
    )
    text = "/home/ada-lovelace colemak-dh true"
    assert redactor.redact(text) == text


def test_secret_that_begins_another_does_not_leave_the_rest_of_it() -> None:
    redactor = Redactor({"SHORT_KEY": "abcdefgh", "LONG_KEY": "abcdefghijklmnop"})
    assert redactor.redact("abcdefghijklmnop abcdefgh") == "[redacted LONG_KEY] [redacted SHORT_KEY]"


def test_stream_holds_back_only_what_may_begin_a_secret() -> None:
    stream = Redactor({"A_TOKEN": "correct-horse"}).stream()
    assert stream.feed("a plain line\n") == "a plain line\n"
    assert stream.feed("it is corr") == "it is "
    assert stream.feed("ect-horse!") == "[redacted A_TOKEN]!"
    assert stream.feed("corr") == ""
    assert stream.finish() == "corr"


def test_stream_waits_for_the_longer_of_two_secrets() -> None:
    stream = Redactor({"SHORT_KEY": "abcdefgh", "LONG_KEY": "abcdefghijklmnop", "INNER_KEY": "cdefghijkl"}).stream()
    assert stream.feed("abcdefgh") == ""
    assert stream.feed("ijkl") == ""
    assert stream.feed("mnop") == "[redacted LONG_KEY]"
    assert stream.feed("abcdefgh") == ""
    assert stream.feed("!") == "[redacted SHORT_KEY]!"


def _cut(text: str) -> st.SearchStrategy[list[str]]:
    return st.integers(0, len(text)).map(lambda place: [text[:place], text[place:]])


@given(st.data())
def test_stream_says_what_the_whole_text_would(data: st.DataObject) -> None:
    # Parts of one text as secrets: they begin, hold and overlap one another.
    base = data.draw(st.text("ab", min_size=12, max_size=20))
    parts = st.tuples(st.integers(0, 4), st.integers(8, 20)).map(lambda place: base[place[0] : place[0] + place[1]])
    secrets = data.draw(st.dictionaries(st.sampled_from(["A_KEY", "B_TOKEN", "C_SECRET"]), parts, min_size=1))
    said_parts = st.one_of(st.just(base), parts, st.text("abx", max_size=6))
    pieces = [piece for part in data.draw(st.lists(said_parts.flatmap(_cut), max_size=6)) for piece in part]
    redactor = Redactor(secrets)
    stream = redactor.stream()
    said = "".join([stream.feed(piece) for piece in pieces]) + stream.finish()
    assert said == redactor.redact("".join(pieces))
    assert not any(secret in said for secret in secrets.values())
