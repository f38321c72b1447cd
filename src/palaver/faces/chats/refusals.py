"""The refusals that any route of this face may answer with, for its description. Their shape is that of all faces."""

from litestar.openapi.datastructures import ResponseSpec

from palaver.schema.errors import WireError


def _refusal(description: str) -> ResponseSpec:
    return ResponseSpec(WireError, description=description, generate_examples=False)


REFUSED: dict[int, ResponseSpec] = {
    401: _refusal("No token, or one that is not ours"),
    403: _refusal("The token may not do that"),
    410: _refusal("The chat was deleted"),
    503: _refusal("The log cannot be reached; try again"),
    507: _refusal("The disk is full"),
}
UNKNOWN: dict[int, ResponseSpec] = {404: _refusal("Nobody knows it")}
CONFLICT: dict[int, ResponseSpec] = {409: _refusal("The agent is working, or the file is another chat's")}
TOO_LARGE: dict[int, ResponseSpec] = {413: _refusal("The document is too large")}
