"""Tokens and one-time codes, without a server."""

from palaver.clock import ManualClock
from palaver.people.authentication import KeyRecord, Keys, token_hash


def test_printed_link_outlives_a_token_that_is_made_for_another_and_not_the_owners_own() -> None:
    keys = Keys("first", ManualClock())
    link, other = keys.new_code(), keys.new_code()
    keys.replace("first", [KeyRecord(name="ada", kind="human", hash=token_hash("second"))])
    assert keys.by_code(link) == keys.owner
    keys.replace("renewed")
    assert keys.by_code(other) is None
