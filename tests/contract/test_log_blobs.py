"""What every log promises about blobs: kept once, under the hash of their bytes."""

from collections.abc import AsyncIterator
from hashlib import sha256
from pathlib import Path

import pytest

from palaver.schema.base import BlobRef
from tests.unit.log.stores import KINDS, Store, open_store

pytestmark = pytest.mark.anyio


@pytest.fixture(params=KINDS)
async def store(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Store]:
    async with open_store(request.param, tmp_path / "data") as opened:
        yield opened


@pytest.mark.parametrize("data", [b"", b"tea", bytes(range(256)) * 40_000])
async def test_a_blob_comes_back_as_it_was(store: Store, data: bytes) -> None:
    ref = await store.log.blobs.put(data, "image/png")
    assert ref == BlobRef(id=sha256(data).hexdigest(), size=len(data), mime="image/png")
    assert await (await store.reopen()).blobs.get(ref.id) == (data, "image/png")


async def test_putting_the_same_bytes_again_changes_nothing(store: Store) -> None:
    first = await store.log.blobs.put(b"tea", "text/plain")
    assert await store.log.blobs.put(b"tea", "text/plain") == first
    assert await store.log.blobs.put(b"tea", "text/html") == first
    assert await store.log.blobs.get(first.id) == (b"tea", "text/plain")


async def test_what_is_not_a_blob_is_none(store: Store) -> None:
    ref = await store.log.blobs.put(b"tea", "text/plain")
    for blob in (
        "",
        "0" * 64,
        ref.id.upper(),
        ref.id[:-1],
        f"{ref.id}\n",
        f"../{ref.id}",
        "../../palaver.db",
        "ü" * 64,
    ):
        assert await store.log.blobs.get(blob) is None
