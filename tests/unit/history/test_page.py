"""The HTML page: everything anybody said is text, nothing runs, nothing is fetched, and the page can be read back."""

import base64
import json
import re
import zlib
from hashlib import sha256
from html.parser import HTMLParser

import pytest
from msgspec.structs import replace

from palaver.errors import Invalid, TooLarge
from palaver.history import page
from palaver.history.page import extract_document, write_page
from palaver.history.trajectory import trajectory_of
from palaver.schema.view import FileChange, ImageBlock, State, TextBlock, ThinkingBlock
from tests.unit.history.sample import asked, conversation, everything, message, said, tool

_TAGS = (
    "html head meta title style body header main section h1 h2 h3 h4 h5 h6 small p div details summary pre code span em "
    "strong a ul ol li table thead tbody tr th td blockquote hr br img s"
)
ALLOWED = frozenset(_TAGS.split())
HOSTILE = [
    "<script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    '"><svg onload=alert(1)>',
    "[click](javascript:alert(1))",
    "[click](  JaVaScRiPt:alert(1))",
    "[click](data:text/html;base64,PHNjcmlwdD4=)",
    "[click](vbscript:x)",
    "![pixel](https://example.org/pixel.png)",
    "<a href='javascript:alert(1)'>x</a>",
    "<!-- --><script>alert(1)</script>",
    "</style><script>alert(1)</script>",
    "</details></section></main><iframe src=//example.org>",
    '[a](https://example.org/"onmouseover="alert(1))',
    '[a](https://example.org "t\\" onmouseover=alert(1) x=\\"")',
    "`<script>`\n\n```html\n<script>alert(1)</script>\n```",
    "&lt;script&gt; &#x3c;script&#x3e;",
    "<https://example.org/<script>>",
    "| <b>x</b> |\n|---|\n| <script>y</script> |",
    "\0<scr\0ipt>",
]


class Seen(HTMLParser):
    """What a browser would make of the page."""

    def __init__(self, html: str) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.text += data


def html(state: State) -> str:
    return "".join(write_page(state))


def specials(text: str) -> list[str]:
    """Structured answers with a text in every field."""
    file = {"path": text, "summary": text, "diff": text}
    option = {"label": text, "description": text, "preview": text}
    blocks = [
        {"type": "plan", "summary": text, "items": [{"title": text, "description": text, "status": "skipped"}]},
        {"type": "finalize_task", "packet": {"title": text, "summary": text, text: [text]}},
        {"type": "change_report", "files": [file], "truncated_count": 2},
        {"type": "ask_user", "questions": [{"question": text, "header": text, "options": [option]}]},
    ]
    return [json.dumps(block) for block in blocks]


def test_structured_answers_are_cards_and_other_json_is_text() -> None:
    cards = html(conversation(*(said(special, f"a{at}") for at, special in enumerate(specials("word")))))
    assert cards.count('<div class="card">') == 4
    for heading in ("Plan", "Task summary", "Change report", "Questions"):
        assert f"<h3>{heading}</h3>" in cards
    assert "<s>word</s> <small>(skipped)</small>" in cards
    assert "…and 2 more" in cards
    assert '"type"' not in Seen(cards).text
    unfinished = TextBlock(index=0, text=specials("word")[0], status="interrupted")
    others = html(
        conversation(said('{"type": "poem"}'), asked(specials("word")[0]), message("a2", "assistant", unfinished))
    )
    assert '<div class="card">' not in others


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_text_is_only_text_wherever_it_stands(text: str) -> None:
    change = FileChange(path=text, kind="modified", diff=text)
    state = conversation(
        asked(text),
        message(
            "a1",
            "assistant",
            ThinkingBlock(index=0, text=text),
            TextBlock(index=1, text=text),
            tool("c", 2, name=text, input={"command": text, text: text}, output=text, changes=(change,)),
            ImageBlock(index=3, url=text),
            *(TextBlock(index=4 + at, text=special) for at, special in enumerate(specials(text))),
            model=text,
            agent=text,
        ),
        message("e1", "event", TextBlock(index=0, text=text), event_kind=text),
        title=text,
        agent=text,
    )

    seen = Seen(html(state))

    assert {tag for tag, _ in seen.tags} <= ALLOWED
    for tag, attributes in seen.tags:
        assert not any(name.startswith("on") for name in attributes), (tag, attributes)
        if "href" in attributes:
            assert re.match(r"(https?://|mailto:)", attributes["href"] or "")
        if "src" in attributes:
            assert (attributes["src"] or "").startswith("data:image/")


def test_page_allows_nothing_but_its_own_style_and_data_images() -> None:
    document = html(everything())
    policy = next(fields["content"] for tag, fields in Seen(document).tags if "http-equiv" in fields)

    assert "script" not in {tag for tag, _ in Seen(document).tags}
    assert (policy or "").startswith("default-src 'none'; style-src 'sha256-")
    style = document[document.index("<style>") + 7 : document.index("</style>")]
    assert base64.b64encode(sha256(style.encode()).digest()).decode() in (policy or "")


def test_calls_are_folded_and_what_would_deceive_is_spelt_out() -> None:
    state = conversation(
        replace(said("x"), blocks=(tool("c", 0, input={"command": "rm \u202etxt.exe\x1b[31m"}, output="ok"),))
    )

    document = html(state)

    assert "<details><summary><code>shell</code>" in document
    assert "$ rm [U+202E]txt.exe[U+001B][31m" in document


def test_markdown_of_the_agent_is_rendered_and_a_persons_words_are_not() -> None:
    document = html(conversation(asked("**mine**"), said("**bold** and [link](https://example.org)")))

    assert "**mine**" in document
    assert "<strong>bold</strong>" in document
    assert '<a rel="noopener noreferrer nofollow" href="https://example.org">' in document


def test_data_image_is_shown_and_a_remote_one_is_not() -> None:
    inline = "data:image/png;base64,aGk="
    blocks = (ImageBlock(index=0, url=inline), ImageBlock(index=1, url="https://example.org/x.png"))

    images = [fields for tag, fields in Seen(html(conversation(message("u", "user", *blocks)))).tags if tag == "img"]

    assert [fields["src"] for fields in images] == [inline]


def test_page_is_read_back_without_what_it_does_not_show() -> None:
    read = trajectory_of(extract_document(html(everything())))

    assert [one.role for one in read.messages] == ["user", "assistant", "assistant", "user", "assistant"]
    assert read.title == "A talk about files"
    assert read.params == {}
    assert "Process p ended" not in repr(read.messages)


def test_page_of_somebody_else_and_a_damaged_one_are_refused() -> None:
    with pytest.raises(Invalid, match="not made by Palaver"):
        extract_document("<!doctype html><p>hello")
    with pytest.raises(Invalid, match="damaged"):
        extract_document("<!-- palaver-trajectory:AAAA -->")


def test_page_that_inflates_without_end_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(page, "EMBEDDED_BYTES", 1 << 20)
    bomb = base64.b64encode(zlib.compress(b" " * (8 << 20))).decode()

    with pytest.raises(TooLarge):
        extract_document(f"<!-- palaver-trajectory:{bomb} -->")
