"""A route that takes a JSON object and answers 200: the form of nearly every call that other contracts have.

Used by the faces in place of Litestar's own `post`, which would answer 201 and read bodies leniently.
"""

from typing import Any

from litestar import post

from palaver.faces.http.body import JsonBody


def json_post(path: str | list[str], operation_id: Any, *tags: str, status_code: int = 200, **more: Any) -> post:
    """`operation_id` names it in the API's description."""
    return post(
        path,
        dto=JsonBody,
        status_code=status_code,
        operation_id=operation_id,
        tags=list(tags),
        **more,
    )
