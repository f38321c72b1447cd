"""A conversation as one page of HTML: no scripts, nothing loaded from anywhere, light and dark, fit for paper.

Export calls this. Whatever anybody said is escaped or goes through the markdown renderer with HTML off; links lead to http,
https and mailto alone; images are data or are not there. The page's own policy forbids everything else, should an escape
ever be forgotten. At its end a comment holds what the page shows as a trajectory, so that import can read it back. Pure.
"""

import base64
import binascii
import re
import zlib
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from hashlib import sha256
from html import escape
from typing import Any

import msgspec
from msgspec.structs import replace

from palaver.core.text.special_blocks import (
    AskUserBlock,
    ChangeReportBlock,
    FinalizeTaskBlock,
    PlanBlock,
    ReportedFile,
    SpecialBlock,
)
from palaver.errors import Invalid, TooLarge
from palaver.history import transcript
from palaver.history.parts import as_json, decode_document
from palaver.history.trajectory import document_of
from palaver.schema.view import (
    Block,
    FileChange,
    ImageBlock,
    Message,
    PlanItem,
    Question,
    State,
    TextBlock,
    ThinkingBlock,
    ToolBlock,
)

MARKDOWN_CHARS = 100_000
"""A longer text is shown as it was written: of some texts the parser makes a second for every ten thousand characters."""
EMBEDDED = "palaver-trajectory:"
EMBEDDED_BYTES = 64 << 20
"""What the comment may hold once it is inflated: twice what an import may send."""

_STYLE = """
:root { color-scheme: light dark; --ink: light-dark(#1d1f23, #e4e4e0); --paper: light-dark(#fdfdfb, #17181b);
  --faint: light-dark(#6a6d74, #9a9da4); --line: light-dark(#dddcd6, #34363b); --mine: light-dark(#eef1f6, #22262e);
  --code: light-dark(#f4f3ef, #1f2125); --added: light-dark(#176b2c, #7fcf93); --gone: light-dark(#9a1f1f, #ef9a9a) }
* { box-sizing: border-box }
body { max-width: 48rem; margin: 0 auto; padding: 2rem 1rem 4rem; background: var(--paper); color: var(--ink);
  font: 1rem/1.6 system-ui, sans-serif; overflow-wrap: anywhere }
header { border-bottom: 1px solid var(--line); margin-bottom: 2rem; padding-bottom: 1rem }
h1 { font-size: 1.5rem; line-height: 1.3; margin: 0 }
header p, section > h2 small, .note { color: var(--faint); font-size: 0.85rem; font-weight: normal; margin: 0.25rem 0 0 }
section { margin: 0 0 1.75rem } section > h2 { font-size: 0.95rem; margin: 0 0 0.35rem }
.said :is(h1, h2, h3, h4, h5, h6) { font-size: 1.1rem; margin: 1rem 0 0.4rem }
.said > :first-child { margin-top: 0 } .said > :last-child { margin-bottom: 0 }
section.user { background: var(--mine); border-radius: 0.6rem; padding: 0.75rem 1rem }
.typed { white-space: pre-wrap; unicode-bidi: plaintext }
pre { background: var(--code); border-radius: 0.4rem; padding: 0.75rem; overflow-x: auto; white-space: pre-wrap;
  margin: 0.5rem 0; font: 0.85rem/1.5 ui-monospace, monospace; unicode-bidi: isolate }
code { font: 0.9em ui-monospace, monospace } pre code { font: inherit }
details { border: 1px solid var(--line); border-radius: 0.4rem; margin: 0.6rem 0; padding: 0 0.75rem }
details > :last-child { margin-bottom: 0.75rem }
summary { cursor: pointer; padding: 0.4rem 0; color: var(--faint); font-size: 0.9rem }
summary code { color: var(--ink) } .failed { color: var(--gone) } .added { color: var(--added) } .gone { color: var(--gone) }
table { border-collapse: collapse; display: block; overflow-x: auto }
td, th { border: 1px solid var(--line); padding: 0.25rem 0.6rem; text-align: left }
blockquote { border-left: 3px solid var(--line); margin: 0.5rem 0; padding-left: 1rem; color: var(--faint) }
.card { border: 1px solid var(--line); border-left-width: 3px; border-radius: 0.6rem; margin: 0.6rem 0; padding: 0.75rem 1rem }
.card > * { margin: 0 0 0.4rem } .card > :last-child { margin-bottom: 0 } .card > h3 { font-size: 0.95rem }
.card :is(ul, ol) { padding-left: 1.4rem } .card small { color: var(--faint) } .card s { color: var(--faint) }
img { max-width: 100%; border-radius: 0.4rem } a { color: inherit }
@media print { :root { color-scheme: light } body { max-width: none; padding: 0; font-size: 10pt }
  section { break-inside: avoid-page } section.user { border: 1px solid var(--line) } h2 { break-after: avoid } }
"""
_STYLE_HASH = base64.b64encode(sha256(_STYLE.encode()).digest()).decode()
POLICY = f"default-src 'none'; style-src 'sha256-{_STYLE_HASH}'; img-src data:; base-uri 'none'; form-action 'none'"
_LINK = re.compile(r"(?:https?://|mailto:)", re.IGNORECASE)
_IMAGE = re.compile(r"data:image/(?:png|jpeg|gif|webp);base64,[A-Za-z0-9+/=]+")
# Characters that change how others are shown, or that a terminal would obey.
_UNSEEN = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff]")
_COMMENT = re.compile(rf"<!-- {EMBEDDED}([A-Za-z0-9+/=]*) -->")


@cache
def _markdown() -> Callable[[str], str]:
    # Imported when the first page is written: a server starts without it.
    from markdown_it import MarkdownIt

    class Markdown(MarkdownIt):
        def validateLink(self, url: str) -> bool:  # noqa: N802
            """Where a link may lead. Anything else stays text."""
            return _LINK.match(url) is not None

    markdown = Markdown("commonmark", {"html": False})
    markdown.enable(["table", "strikethrough"])
    # An image would be fetched from wherever it says; without the rule it stays a link.
    markdown.disable("image")
    return markdown.render


def write_page(state: State) -> Iterator[str]:
    """The page, a message a piece. Texts must be whole; images that shall be seen must be data URLs."""
    title = state.title or "Conversation"
    yield (
        f'<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n<meta name="referrer" content="no-referrer">\n'
        f'<meta name="color-scheme" content="light dark">\n<title>{_plain(title)}</title>\n<style>{_STYLE}</style>\n'
        f"</head>\n<body>\n<header><h1>{_plain(title)}</h1>\n<p>{_plain(_about(state))}</p></header>\n<main>\n"
    )
    messages = transcript.visible_messages(state)
    for message in messages:
        yield _section(message, state.agent)
    yield "</main>\n"
    yield f"<!-- {EMBEDDED}{_embed(state, messages)} -->\n</body>\n</html>\n"


def _about(state: State) -> str:
    words = [transcript.when(state.created_at) if state.created_at else "", f"agent {state.agent}"]
    return transcript.MODEL_SEPARATOR.join(word for word in words if word)


def _section(message: Message, agent: str) -> str:
    words = [message.model or "", transcript.when(message.ts) if message.ts else ""]
    small = transcript.MODEL_SEPARATOR.join(_plain(word) for word in words if word)
    name = _plain(transcript.speaker(message, agent))
    body = "".join(_part_html(message, block) for block in message.blocks)
    ended = message.ended
    if ended is not None and ended.error is not None:
        body += f'<p class="note failed">{_plain(ended.error.message)}</p>\n'
    return f'<section class="{message.role}">\n<h2>{name} <small>{small}</small></h2>\n{body}</section>\n'


def _part_html(message: Message, block: Block) -> str:
    special = transcript.special_of(message, block)
    return _block_html(block, typed=message.role != "assistant") if special is None else _card(special)


def _block_html(block: Block, *, typed: bool) -> str:
    match block:
        case TextBlock():
            cut = "" if block.status == "done" else '<p class="note">(interrupted)</p>\n'
            text = f'<div class="typed">{_plain(block.text)}</div>' if typed else _render(block.text)
            return f"{text}\n{cut}"
        case ThinkingBlock():
            if not block.text:
                return ""
            return f'<details><summary>Thinking</summary><div class="typed">{_plain(block.text)}</div></details>\n'
        case ImageBlock():
            if _IMAGE.fullmatch(block.url) is None:
                return '<p class="note">(an image that is not part of this page)</p>\n'
            return f'<p><img alt="" src="{block.url}"></p>\n'
        case ToolBlock():
            return _tool_html(block)


def _tool_html(tool: ToolBlock) -> str:
    failed = "" if tool.status == "ok" else ' class="failed"'
    summary = f"<code>{_visible(tool.name)}</code> <span{failed}>{_plain(transcript.outcome(tool))}</span>"
    parts = [f"<details><summary>{summary}</summary>", f"<pre>{_visible(_arguments(tool))}</pre>"]
    if result := transcript.result(tool):
        parts.append(f"<pre>{_visible(result)}</pre>")
    if tool.truncated:
        parts.append('<p class="note">(the output was longer)</p>')
    parts += [_diff_html(change) for change in tool.changes]
    return "".join([*parts, "</details>\n"])


def _arguments(tool: ToolBlock) -> str:
    match tool.input:
        case {"command": str(command), **others} if not others:
            return f"$ {command}"
        case dict():
            return "\n".join(
                f"{name}: {value if isinstance(value, str) else as_json(value)}" for name, value in tool.input.items()
            )
        case _:
            return tool.input_text if tool.input is None else as_json(tool.input)


def _diff_html(change: FileChange) -> str:
    heading = f'<p class="note">{_visible(change.path)} ({change.kind}, +{change.additions} -{change.deletions})</p>'
    if not change.diff:
        return heading
    lines = (_line_html(line) for line in change.diff.split("\n"))
    return heading + "<pre>" + "\n".join(lines) + "</pre>"


def _line_html(line: str) -> str:
    kind = {"+": "added", "-": "gone"}.get(line[:1])
    return f'<span class="{kind}">{_visible(line)}</span>' if kind else _visible(line)


# -- structured answers


def _card(block: SpecialBlock) -> str:
    heading, body = _card_parts(block)
    return f'<div class="card"><h3>{heading}</h3>{"".join(body)}</div>\n'


def _card_parts(block: SpecialBlock) -> tuple[str, list[str]]:
    match block:
        case PlanBlock(plan=plan):
            return "Plan", [_paragraph(plan.summary), _list("ol", [_step(item) for item in plan.items])]
        case FinalizeTaskBlock():
            summary = _render(block.summary) if block.summary.strip() else ""
            sections = [
                _paragraph(section.title, "strong") + _list("ul", [_plain(item) for item in section.items])
                for section in block.sections
            ]
            return "Task summary", [_paragraph(block.title, "strong"), summary, *sections]
        case ChangeReportBlock():
            more = f"…and {block.truncated_count} more" if block.truncated_count else ""
            return "Change report", [_list("ul", [_report_html(file) for file in block.files]), _paragraph(more)]
        case AskUserBlock():
            return "Questions", [_question(question) for question in block.questions]


def _paragraph(text: str, tag: str = "span") -> str:
    return f"<p><{tag}>{_plain(text)}</{tag}></p>" if text.strip() else ""


def _list(tag: str, items: Sequence[str]) -> str:
    return f"<{tag}>{''.join(f'<li>{item}</li>' for item in items)}</{tag}>" if items else ""


def _step(item: PlanItem) -> str:
    title = f"<s>{_plain(item.title)}</s>" if item.status == "skipped" else _plain(item.title)
    status = {"pending": "", "in_progress": "in progress", "done": "done", "skipped": "skipped"}[item.status]
    notes = [f" <small>({status})</small>" if status else ""]
    notes.append(f"<br><small>{_plain(item.description)}</small>" if item.description else "")
    return title + "".join(notes)


def _report_html(file: ReportedFile) -> str:
    summary = f": {_plain(file.summary)}" if file.summary else ""
    lines = "\n".join(_line_html(line) for line in file.diff.rstrip("\n").split("\n")) if file.diff else ""
    return f"<code>{_visible(file.path)}</code>{summary}" + (f"<pre>{lines}</pre>" if lines else "")


def _question(question: Question) -> str:
    header = f"<small>{_plain(question.header)}</small><br>" if question.header.strip() else ""
    options = [
        _plain(option.label) + (f" <small>{_plain(option.description)}</small>" if option.description else "")
        for option in question.options
    ]
    return f"<p>{header}{_plain(question.question)}</p>{_list('ul', options)}"


def _plain(text: str) -> str:
    return escape(text.replace("\0", "\N{REPLACEMENT CHARACTER}"))


def _visible(text: str) -> str:
    """Escaped, with what would otherwise go unseen or be obeyed spelt out."""
    return escape(_UNSEEN.sub(lambda found: f"[U+{ord(found[0]):04X}]", text))


def _render(markdown: str) -> str:
    if len(markdown) > MARKDOWN_CHARS:
        return f'<div class="said"><pre>{_plain(markdown)}</pre></div>'
    html = _markdown()(markdown)
    linked = html.replace("<a href=", '<a rel="noopener noreferrer nofollow" href=').rstrip()
    return f'<div class="said">{linked}</div>'


# -- what the page shows, for import


def _embed(state: State, messages: Sequence[Message]) -> str:
    """Only what the page shows: whoever passes a page on passes on what he sees."""
    shown = replace(state, messages=tuple(_without_images(message) for message in messages), params={}, draft="")
    packed = zlib.compress(msgspec.json.encode(document_of(replace(shown, parent=None))))
    return base64.b64encode(packed).decode()


def _without_images(message: Message) -> Message:
    """Pictures stand in the page already; twice would be too much."""
    if not any(isinstance(block, ImageBlock) for block in message.blocks):
        return message
    blocks = tuple(
        TextBlock(index=block.index, text="(image)") if isinstance(block, ImageBlock) else block
        for block in message.blocks
    )
    return replace(message, blocks=blocks)


def extract_document(page: str) -> Any:
    """The trajectory at the end of a page of ours. Raises Invalid, or TooLarge for one that inflates without end."""
    found = _COMMENT.search(page)
    if found is None:
        raise Invalid(
            "This page was not made by Palaver, or was changed since. Export as `trajectory` or `jsonl` to bring a "
            "conversation back."
        )
    try:
        inflating = zlib.decompressobj()
        packed = inflating.decompress(base64.b64decode(found[1], validate=True), EMBEDDED_BYTES)
        if inflating.unconsumed_tail:
            raise TooLarge("The conversation in this page is too large to import.", limit_bytes=EMBEDDED_BYTES)
        return decode_document(packed)
    except (binascii.Error, zlib.error):
        raise Invalid("The conversation in this page is damaged. Export it again.") from None
