"""Blobs: kept once under the hash of their bytes, there before anything names them."""

import hashlib

import pytest

from palaver.log.base import EventLog


async def test_blob_comes_back_with_its_type_under_its_hash(log: EventLog) -> None:
    ref = await log.blobs.put(b"bytes", "image/png")
    assert (ref.id, ref.size, ref.mime) == (hashlib.sha256(b"bytes").hexdigest(), 5, "image/png")
    assert await log.blobs.get(ref.id) == (b"bytes", "image/png")


async def test_same_bytes_are_one_blob(log: EventLog) -> None:
    assert (await log.blobs.put(b"x", "text/plain")).id == (await log.blobs.put(b"x", "text/plain")).id


@pytest.mark.parametrize("name", ["", "..", "../token", "a" * 64 + "/x", "A" * 64, "0" * 63, "0" * 64])
async def test_name_that_is_no_blob_is_nothing(log: EventLog, name: str) -> None:
    assert await log.blobs.get(name) is None
