/**
 * One conversation the page follows: its folded state, what waits to be folded, its pages and its rows.
 *
 * Owned by the store, which passes on what the feed says and asks for a view at each flush. Does no I/O.
 */

import type { Message, State, WireError } from "../protocol/events.gen";
import type { AnyEvent } from "../protocol/guards";
import { EMPTY_STATE, fold } from "./fold";
import { olderThan, PAGE_SIZE, touchesUnheld, withHeldPages, withPage } from "./pages";
import { PlainBook } from "./plain";
import { RowBook } from "./rowbook";
import type { OpenConversation, Renderer } from "./snapshot";

const NO_RENDERER: Renderer = { markdown: new PlainBook(), work: null };

type Beside = Pick<OpenConversation, "outbox" | "draft" | "selected" | "leftAt">;

export class Conversation {
  readonly id: string;
  /** How many parts of the view have it open. */
  openCount = 0;
  private state: State;
  private phase: OpenConversation["phase"] = "loading";
  private error: WireError | null = null;
  /** What is held is this device's copy. */
  private isCopy = false;
  private pending: AnyEvent[] = [];
  private page: "idle" | "loading" | "failed" = "idle";
  /** Something changed that a page on its way may not know of. */
  private pageIsStale = false;
  private prependCount = 0;
  private readonly rowBook: RowBook;
  /** Null until it is loaded. */
  private renderer: Renderer | null = null;
  private last: OpenConversation | null = null;

  constructor(id: string, dayOf: (ts: number) => number) {
    this.id = id;
    this.state = { ...EMPTY_STATE, conversation: id };
    this.rowBook = new RowBook(dayOf);
  }

  /** Seq of what is held, or null before the first snapshot. */
  get heldSeq(): number | null {
    return this.phase === "ready" && !this.isCopy ? (this.pending.at(-1)?.seq ?? this.state.seq) : null;
  }

  useRenderer(renderer: Renderer): void {
    this.renderer ??= renderer;
  }

  get current(): State {
    return this.state;
  }

  get isReady(): boolean {
    return this.phase === "ready";
  }

  get isMissing(): boolean {
    return this.phase === "missing";
  }

  // -- what the feed says

  take(events: readonly AnyEvent[]): void {
    for (const event of events) this.pending.push(event);
  }

  /** Whether pages were held before it, which should be looked at again: the hole may have changed them. */
  adopt(snapshot: State): boolean {
    const whole = this.isCopy ? snapshot : withHeldPages(snapshot, this.state);
    this.isCopy = false;
    this.pending = [];
    this.pageIsStale = true;
    this.state = whole;
    this.phase = "ready";
    this.error = null;
    return whole !== snapshot;
  }

  /** What was last seen here, until the server says how it is. */
  showCopy(state: State): void {
    if (this.phase === "ready") return;
    this.adopt(state);
    this.isCopy = true;
  }

  refuse(error: WireError): void {
    this.phase = error.code === "not_found" || error.code === "gone" ? "missing" : "failed";
    this.error = error;
  }

  retry(): void {
    if (this.phase === "failed") this.phase = "loading";
  }

  /** Folds what waits. The client request ids among it. */
  flush(): Set<string> {
    const events = this.pending;
    this.pending = [];
    if (this.page === "loading" && !this.pageIsStale) this.pageIsStale = this.reachesBehind(events);
    this.state = fold(this.state, events);
    return new Set(events.flatMap((event) => (event.type !== "opaque" && event.client_request_id) || []));
  }

  private reachesBehind(events: readonly AnyEvent[]): boolean {
    // What this very batch adds is held by the time it is changed.
    const added = new Set<string>();
    return events.some((event) => {
      if (event.type === "message.added" || event.type === "answer.started") added.add(event.message);
      if (event.type === "tool.called" || event.type === "tool.input.delta") added.add(event.call);
      if ("message" in event && event.message != null && added.has(event.message)) return false;
      if ("call" in event && event.call != null && added.has(event.call)) return false;
      return touchesUnheld(this.state, event);
    });
  }

  // -- pages

  /** The seq to ask older messages for, or null when there is nothing to ask. */
  beginPage(): number | null {
    const before = this.page === "loading" || this.phase !== "ready" ? null : olderThan(this.state);
    if (before !== null) {
      this.page = "loading";
      this.pageIsStale = false;
    }
    return before;
  }

  /** False: the conversation changed meanwhile, ask again. */
  endPage(items: readonly Message[], before: number): boolean {
    this.page = "idle";
    if (this.pageIsStale) return false;
    const first = this.state.messages[0]?.seq;
    this.state = withPage(this.state, items, before);
    if (this.state.messages[0]?.seq !== first) this.prependCount += 1;
    return true;
  }

  failPage(): void {
    this.page = "failed";
  }

  /** Puts in a page that was held before, as the server has it now. The seq to go on from, or null at the end. */
  refreshPage(items: readonly Message[], before: number): number | null {
    const held = this.state.messages[0]?.seq ?? before;
    this.state = withPage(this.state, items, before);
    const first = items[0]?.seq ?? 0;
    return items.length < PAGE_SIZE || first <= held ? null : first;
  }

  // -- what the view sees

  /** The same object when nothing in it changed. */
  view(beside: Beside): OpenConversation {
    const { state, error, prependCount } = this;
    const older = this.page === "idle" ? (state.offset > 0 ? "more" : "start") : this.page;
    // Rows shown before their text can be rendered would change their height under the reader.
    const { markdown, work } = this.renderer ?? NO_RENDERER;
    const phase = state.deleted ? "missing" : this.renderer === null && this.phase === "ready" ? "loading" : this.phase;
    const rows = this.last?.state === state ? this.last.rows : this.rowBook.rows(state);
    const view = { id: this.id, phase, error, state, rows, older, prependCount, markdown, work, ...beside } as const;
    if (this.last === null || !isSame(this.last, view)) this.last = view;
    return this.last;
  }
}

function isSame(one: OpenConversation, other: OpenConversation): boolean {
  return (Object.keys(other) as (keyof OpenConversation)[]).every((key) => one[key] === other[key]);
}
