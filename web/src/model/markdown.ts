/**
 * Agent text to parts the view can put on the page: markdown-it without raw HTML, links by scheme, images as links.
 *
 * While text streams only its open tail is parsed again: a top-level block is closed, rendered once and never touched
 * again when complete lines show that a later block has begun. Called by the view with the text of a block. Must never
 * let HTML of the text through, nor an address with another scheme, nor load anything.
 */

import MarkdownIt, { type Env, type StateCore, type Token } from "markdown-it";
import { plainly } from "./visible";

export type MarkdownPart =
  | { readonly kind: "html"; readonly key: number; readonly html: string }
  /** A top-level fenced or indented code block. `open` while its end has not come. */
  | { readonly kind: "code"; readonly key: number; readonly language: string; readonly code: string; readonly open: boolean };

/** Texts kept by a book: more than any screen shows, little enough to forget about. */
const KEEP_TEXTS = 400;

/** Deeper than anybody writes, and not as deep as the parser goes (100). */
const DEEPEST = 60;

/**
 * Steps of the parser, for blocks and within them; 64 KB that people write take some 8,000 together. A text beyond them, which
 * would stop the page for seconds, is shown as it was written. The terminal's `tui/text/markdown.py` has the same.
 */
const STEPS_LIMIT = 30_000;
const INLINE_STEPS_LIMIT = 60_000;

const LINKED = /^(?:https?:\/\/|mailto:)/i;
const OUR_BLOB = /^\/api\/blobs\/[\w-]+$/;

/** The address if its scheme is one the page links to (http, https, mailto, or our own /api/blobs), else null. */
export function safeHref(address: string): string | null {
  return LINKED.test(address) || OUR_BLOB.test(address) ? address : null;
}

const md = new MarkdownIt({ html: false, linkify: true });
// "file.py" is no address in Paraguay: only what has a scheme becomes a link by itself.
md.linkify.set({ fuzzyLink: false, fuzzyEmail: false, fuzzyIP: false });
// What is a link is decided below, where an address that is none can still be shown.
md.validateLink = () => true;
md.core.ruler.push("only_safe_links", onlySafeLinks);
md.core.ruler.push("align_by_class", alignByClass);
let steps = 0;
let inlineSteps = 0;
// They match nothing: called wherever a block or a mark may begin, they count the steps and what those brought forth.
md.block.ruler.before(
  "table",
  "count",
  (state) => {
    if (++steps + state.tokens.length > STEPS_LIMIT) throw new RangeError();
    return false;
  },
  { alt: ["paragraph", "reference", "blockquote", "list"] },
);
md.inline.ruler.before("text", "count", () => {
  if (++inlineSteps > INLINE_STEPS_LIMIT) throw new RangeError();
  return false;
});

/** Null: beyond the bounds, of ours or of the engine's stack. */
function bounded(parse: () => Token[]): Token[] | null {
  steps = inlineSteps = 0;
  try {
    return parse();
  } catch (cause) {
    if (cause instanceof RangeError) return null;
    throw cause;
  }
}

/** How much work a text makes for the parser; null: more than it is given. For tests. */
export function countSteps(source: string): number | null {
  return bounded(() => md.parse(source, {})) && steps + inlineSteps;
}

/** Columns of a table say their side in a style attribute, which the page's policy forbids; a class says the same. */
function alignByClass(state: StateCore): void {
  for (const token of state.tokens) {
    const side = /^text-align:\s*(left|center|right)$/.exec(String(token.attrGet("style") ?? ""))?.[1];
    if (side !== undefined) token.attrs = [["class", `align-${side}`]];
  }
}

function onlySafeLinks(state: StateCore): void {
  for (const token of state.tokens) {
    if (token.type === "inline" && token.children !== null) token.children = tamed(token.children, state);
  }
}

function tamed(tokens: readonly Token[], state: StateCore): Token[] {
  const tags: string[] = [];
  return tokens.flatMap((token) => {
    if (token.type === "link_open") {
      tags.push(point(token, String(token.attrGet("href") ?? ""), "link"));
    } else if (token.type === "link_close") {
      token.tag = tags.pop() ?? "a";
    } else if (token.type === "image") {
      return asLink(token, state, tags.includes("a"));
    }
    return [token];
  });
}

/** Makes a token a link to the address, or a mere name for it. */
function point(token: Token, address: string, sort: string): string {
  const href = safeHref(address);
  token.tag = href === null ? "span" : "a";
  token.attrs = [
    ["class", href === null ? `md-${sort} md-unlinked` : `md-${sort}`],
    ["title", address],
  ];
  if (href !== null) token.attrs.push(["href", href], ["rel", "noopener noreferrer"], ["target", "_blank"]);
  return token.tag;
}

/** An image is a link to click, because loading it would tell its server that it was read. */
function asLink(image: Token, state: StateCore, insideLink: boolean): Token[] {
  const address = String(image.attrGet("src") ?? "");
  const open = new state.Token("link_open", "a", 1);
  const text = new state.Token("text", "", 0);
  const close = new state.Token("link_close", "a", -1);
  close.tag = point(open, insideLink ? "" : address, "image");
  if (insideLink) open.attrSet("title", address);
  text.content = image.content || address;
  return [open, text, close];
}

/** One text as it grows. A part keeps its identity as long as it does not change. */
export class MarkdownStream {
  private text = "";
  private done = false;
  private parts: readonly MarkdownPart[] = [];
  private closedCount = 0;
  /** Everything before this is closed: rendered, with its link definitions in `env`. */
  private closedChars = 0;
  /** Complete lines up to here were looked at. */
  private checkedChars = 0;
  private env: Env = {};

  /** `text` must begin with what was given before, else everything is rendered anew. `done` settles the tail. */
  render(text: string, done: boolean): readonly MarkdownPart[] {
    const source = normalized(text, done);
    if (source === this.text && done === this.done) return this.parts;
    if (this.done || !source.startsWith(this.text)) this.reset();
    this.text = source;
    this.done = done;
    this.closeBlocks();
    const env: Env = { references: { ...this.env.references } };
    const tail = partsOf(source.slice(this.closedChars), env, this.closedCount, !done);
    // A definition may be used above it, so the end brings everything into its final form.
    if (done && hasDefinitions(env)) this.keep(0, partsOf(source, {}, 0, false));
    else this.keep(this.closedCount, tail);
    return this.parts;
  }

  private reset(): void {
    this.closedCount = 0;
    this.closedChars = 0;
    this.checkedChars = 0;
    this.env = {};
  }

  /**
   * Closes all blocks but the last, judging by complete lines only: a line that is still being written may turn out to
   * belong to the block above. The cut is at the end of the block before the last, because link definitions leave no
   * block, and one right above the last may yet swallow it as its title.
   */
  private closeBlocks(): void {
    const end = this.text.lastIndexOf("\n") + 1;
    if (end <= this.checkedChars) return;
    this.checkedChars = end;
    const lines = this.text.slice(this.closedChars, end);
    const tokens = bounded(() => {
      const found: Token[] = [];
      md.block.parse(lines, md, {}, found);
      return found;
    });
    const beforeLast = tokens?.filter(isTop).at(-2);
    if (beforeLast?.map == null) return;
    const cut = startOfLine(lines, beforeLast.map[1]);
    const closed = partsOf(lines.slice(0, cut), this.env, this.closedCount, false);
    this.keep(this.closedCount, closed);
    this.closedCount += closed.length;
    this.closedChars += cut;
  }

  /** Puts parts from `from` on; those that say the same as before stay the same objects. */
  private keep(from: number, made: readonly MarkdownPart[]): void {
    const known = this.parts;
    this.parts = [
      ...known.slice(0, from),
      ...made.map((part) => {
        const before = known[part.key];
        return before !== undefined && isSame(before, part) ? before : part;
      }),
    ];
  }
}

/** The streams of a conversation by row key, so that a row that scrolls out and in again costs nothing. */
export class MarkdownBook {
  private readonly streams = new Map<string, MarkdownStream>();

  render(key: string, text: string, done: boolean): readonly MarkdownPart[] {
    const stream = this.streams.get(key) ?? new MarkdownStream();
    // Written again at the end: the first is always the one not used for longest.
    this.streams.delete(key);
    this.streams.set(key, stream);
    if (this.streams.size > KEEP_TEXTS) this.streams.delete(this.streams.keys().next().value ?? "");
    return stream.render(text, done);
  }
}

/** All at once, for finished text that is not kept. */
export function renderMarkdown(text: string): readonly MarkdownPart[] {
  return partsOf(normalized(text, true), {}, 0, false);
}

/** As markdown-it itself begins; a return at the end of a piece may be half of a line's end. */
function normalized(text: string, done: boolean): string {
  const whole = !done && text.endsWith("\r") ? text.slice(0, -1) : text;
  const lines = whole.includes("\r") || whole.includes("\0") ? whole.replace(/\r\n?/g, "\n").replaceAll("\0", "\ufffd") : whole;
  return plainly(lines);
}

function partsOf(source: string, env: Env, firstKey: number, growing: boolean): MarkdownPart[] {
  const tokens = bounded(() => md.parse(source, env));
  if (tokens === null) return [{ kind: "code", key: firstKey, language: "", code: source, open: growing }];
  const starts = tokens.flatMap((token, at) => (isTop(token) ? [at] : []));
  return starts.map((from, nth) => {
    const to = starts[nth + 1] ?? tokens.length;
    const own = tokens.slice(from, to);
    const key = firstKey + nth;
    if (own.some(({ level }) => level >= DEEPEST)) return asWritten(source, own, key);
    return partOf(own, env, key, growing && to === tokens.length);
  });
}

/** Of what is nested too deep the parser leaves out the rest; it is shown as it was written instead. */
function asWritten(source: string, [first]: Token[], key: number): MarkdownPart {
  const [from, to] = first?.map ?? [0, 0];
  return { kind: "code", key, language: "", code: source.slice(startOfLine(source, from), endOfLines(source, to)), open: false };
}

function endOfLines(text: string, line: number): number {
  const lines = text.split("\n");
  return line >= lines.length ? text.length : startOfLine(text, line);
}

function partOf(tokens: Token[], env: Env, key: number, growing: boolean): MarkdownPart {
  const first = tokens[0] as Token;
  if (first.type === "fence" || first.type === "code_block") {
    const language = md.utils.unescapeAll(first.info).trim().split(/\s+/)[0] ?? "";
    return { kind: "code", key, language, code: first.content, open: growing && !isEnded(first) };
  }
  return { kind: "html", key, html: md.renderer.render(tokens, md.options, env) };
}

/** An ended fence has two lines more than its content. Where indented code ends only the next block tells. */
function isEnded(token: Token): boolean {
  if (token.type !== "fence" || token.map === null) return false;
  const lines = token.content.split("\n").length - (token.content === "" || token.content.endsWith("\n") ? 1 : 0);
  return token.map[1] - token.map[0] === lines + 2;
}

function isTop(token: Token): boolean {
  return token.level === 0 && token.nesting >= 0 && token.map !== null && token.type !== "inline";
}

function startOfLine(text: string, line: number): number {
  let at = 0;
  for (let passed = 0; passed < line; passed++) at = text.indexOf("\n", at) + 1;
  return at;
}

function hasDefinitions(env: Env): boolean {
  return Object.keys(env.references ?? {}).length > 0;
}

function isSame(one: MarkdownPart, other: MarkdownPart): boolean {
  if (one.kind === "html") return other.kind === "html" && one.html === other.html;
  return other.kind === "code" && one.code === other.code && one.language === other.language && one.open === other.open;
}
