/**
 * Agent text to parts the view can put on the page: markdown-it without raw HTML, links by scheme, images as links.
 *
 * While text streams only its open tail is parsed again: a top-level block is closed, rendered once and never touched
 * again when complete lines show that a later block has begun. Called by the view with the text of a block.
 */

export type MarkdownPart =
  | { readonly kind: "html"; readonly key: number; readonly html: string }
  /** A top-level fenced or indented code block. `open` while its end has not come. */
  | { readonly kind: "code"; readonly key: number; readonly language: string; readonly code: string; readonly open: boolean };

/** One text as it grows. A part keeps its identity as long as it does not change. */
export class MarkdownStream {
  /** `text` must begin with what was given before, else everything is rendered anew. `done` settles the tail. */
  render(_text: string, _done: boolean): readonly MarkdownPart[] {
    throw new Error("stub");
  }
}

/** The streams of a conversation by row key, so that a row that scrolls out and in again costs nothing. */
export class MarkdownBook {
  render(_key: string, _text: string, _done: boolean): readonly MarkdownPart[] {
    throw new Error("stub");
  }
}

/** All at once, for finished text that is not kept. */
export function renderMarkdown(_text: string): readonly MarkdownPart[] {
  throw new Error("stub");
}

/** The address if its scheme is one the page links to (http, https, mailto, or our own /api/blobs), else null. */
export function safeHref(_address: string): string | null {
  throw new Error("stub");
}
