"""Short forms of ids."""

from palaver.cli.support.resolve_id import SHORT_CHARS, short


def test_short_form_is_the_end_that_no_other_shares() -> None:
    ids = ["0199-aaaa-11112222", "0199-bbbb-11112222", "0199-cccc-33334444"]
    assert short(ids[2], ids) == "33334444"
    assert short(ids[0], ids) == "a-11112222"
    assert short(ids[1], ids) == "b-11112222"


def test_short_form_never_looks_like_an_option() -> None:
    assert short("0199c3f2-12345-78", ["0199c3f2-12345-78"]) == "12345-78"
    assert short("abcd-1234567", ["abcd-1234567"]) == "d-1234567"


def test_id_that_ends_another_is_given_whole() -> None:
    whole = "x" * SHORT_CHARS
    assert short(whole, [whole, "y" + whole]) == whole
