/**
 * The list of conversations as it is known so far: rows by id, what is filtered, what is unread, where the next page is.
 *
 * Owned by the store, which does the asking. Gives a view that keeps its identity while nothing in it changes.
 */

import type { Listing, WireError } from "../protocol/events.gen";
import type { ListPage } from "../protocol/wire";
import { type ConversationList, EMPTY_LIST, groupOf, grouped, merged } from "./listing";
import type { Seen } from "./unread";

export class ListBook {
  private readonly seen: Seen;
  private byId: ReadonlyMap<string, Listing> = new Map();
  private phase: ConversationList["phase"] = "loading";
  private error: WireError | null = null;
  private nextCursor: string | null = null;
  private loadingMore = false;
  private isCopy = false;
  private archived = false;
  private text = "";
  /** What the server found for the text, and where it would find more. */
  private found: ReadonlySet<string> = new Set();
  private foundCursor: string | null = null;
  private asking: ReadonlySet<string> = new Set();
  private visible: string | null = null;
  private last: ConversationList = EMPTY_LIST;

  constructor(seen: Seen) {
    this.seen = seen;
  }

  get query(): string {
    return this.text;
  }

  get isLoaded(): boolean {
    return this.phase === "ready" && !this.isCopy;
  }

  clear(): void {
    this.byId = new Map();
    this.phase = "loading";
    this.nextCursor = null;
  }

  merge(rows: readonly Listing[]): void {
    this.byId = merged(this.byId, rows);
  }

  /** What was last seen on this device, until the server says what there is. */
  takeCopy(rows: readonly Listing[]): void {
    if (this.isLoaded) return;
    this.merge(rows);
    this.isCopy = true;
    this.phase = "ready";
  }

  takeFirstPage(page: ListPage, now: number): void {
    if (this.isCopy) this.byId = new Map();
    this.isCopy = false;
    this.merge(page.items);
    this.nextCursor = page.next_cursor;
    this.phase = "ready";
    this.error = null;
    this.seen.begin(page.items, now);
  }

  fail(error: WireError): void {
    if (this.phase !== "ready") this.phase = "failed";
    this.error = error;
  }

  /** Where the next page begins, or null when there is none or it is on its way. */
  beginMore(): string | null {
    const cursor = this.loadingMore ? null : this.text === "" ? this.nextCursor : this.foundCursor;
    this.loadingMore = cursor !== null || this.loadingMore;
    return cursor;
  }

  endMore(page: ListPage | null, query: string): void {
    this.loadingMore = false;
    if (page === null) return;
    if (query === "") this.nextCursor = page.next_cursor;
    else if (query === this.text) this.takeFound(page, query);
    this.merge(page.items);
  }

  filter(query: string): void {
    this.text = query;
    this.found = new Set();
    this.foundCursor = null;
  }

  takeFound(page: ListPage, query: string): void {
    if (query !== this.text) return;
    this.merge(page.items);
    this.found = new Set([...this.found, ...page.items.map((item) => item.id)]);
    this.foundCursor = page.next_cursor;
  }

  /** The conversations whose subagents wait for a person. */
  takeAsking(roots: readonly string[]): void {
    this.asking = new Set(roots);
  }

  showArchived(shown: boolean): void {
    this.archived = shown;
  }

  /** The reader looks at this one, up to `seq`. */
  show(conversation: string | null, seq = 0): void {
    this.visible = conversation;
    if (conversation !== null) this.seen.mark(conversation, seq);
  }

  seenSeq(conversation: string): number | null {
    return this.seen.seqOf(conversation);
  }

  /** `today`: midnight in the reader's time zone. */
  view(today: number): ConversationList {
    const { byId, phase, error, loadingMore, text: query, archived: showArchived } = this;
    const hasMore = (query === "" ? this.nextCursor : this.foundCursor) !== null;
    const rows = [...byId.values()];
    const unread = new Set(rows.filter((row) => this.isUnread(row)).map((row) => row.id));
    const groups = grouped(byId, { query, found: this.found, asking: this.asking, archived: showArchived, today });
    const waitingCount = rows.filter((row) => groupOf(row, today) === "waiting").length;
    const view = { phase, error, byId, groups, query, showArchived, hasMore, loadingMore, unread, waitingCount };
    this.last = {
      ...view,
      unread: sameSet(this.last.unread, unread) ? this.last.unread : unread,
    };
    return this.last;
  }

  private isUnread(row: Listing): boolean {
    return row.id !== this.visible && !row.archived && this.seen.isUnread(row);
  }
}

function sameSet(one: ReadonlySet<string>, other: ReadonlySet<string>): boolean {
  return one.size === other.size && [...one].every((item) => other.has(item));
}
