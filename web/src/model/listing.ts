/** The list of conversations: which rows, in which group, in which order. Pure; the store feeds it. */

import type { Listing, Status, WireError } from "../protocol/events.gen";

export type GroupName = "waiting" | "active" | "today" | "older";

export interface ListGroup {
  readonly name: GroupName;
  readonly items: readonly Listing[];
}

export interface ConversationList {
  readonly phase: "loading" | "ready" | "failed";
  readonly error: WireError | null;
  readonly byId: ReadonlyMap<string, Listing>;
  /** Groups that have items, in the order waiting, active, today, older; newest first inside. Archived rows only when asked. */
  readonly groups: readonly ListGroup[];
  readonly query: string;
  readonly showArchived: boolean;
  readonly hasMore: boolean;
  readonly loadingMore: boolean;
  /** Ids with something the reader has not seen. */
  readonly unread: ReadonlySet<string>;
  readonly waitingCount: number;
}

export const EMPTY_LIST: ConversationList = {
  phase: "loading",
  error: null,
  byId: new Map(),
  groups: [],
  query: "",
  showArchived: false,
  hasMore: false,
  loadingMore: false,
  unread: new Set(),
  waitingCount: 0,
};

const ORDER: readonly GroupName[] = ["waiting", "active", "today", "older"];

const WAITING: ReadonlySet<Status> = new Set(["paused", "waiting_user_input"]);

export function groupOf(listing: Listing, today: number): GroupName {
  if (listing.open_requests > 0 || WAITING.has(listing.status)) return "waiting";
  if (listing.turn !== null) return "active";
  return listing.updated_at >= today ? "today" : "older";
}

/** Rows by id; the one with the later position wins, a deleted one goes. The same map when nothing changed. */
export function merged(
  known: ReadonlyMap<string, Listing>,
  rows: readonly Listing[],
): ReadonlyMap<string, Listing> {
  const changes = rows.filter((row) => {
    const held = known.get(row.id);
    return held === undefined ? !row.deleted : row.pos >= held.pos;
  });
  if (changes.length === 0) return known;
  const byId = new Map(known);
  for (const row of changes) {
    if (row.deleted) byId.delete(row.id);
    else byId.set(row.id, row);
  }
  return byId;
}

/**
 * `found`: ids the server matched to the query; a title that holds the query's words matches at once.
 * `asking`: conversations whose subagents wait for a person.
 */
export function grouped(
  byId: ReadonlyMap<string, Listing>,
  shown: { query: string; found: ReadonlySet<string>; asking: ReadonlySet<string>; archived: boolean; today: number },
): ListGroup[] {
  const words = shown.query.toLowerCase().split(/\s+/).filter(Boolean);
  const groups = new Map<GroupName, Listing[]>(ORDER.map((name) => [name, []]));
  for (const listing of byId.values()) {
    if (listing.archived && !shown.archived) continue;
    // A subagent's is found below the conversation it works for, not beside it; its words are found by a search.
    if (listing.parent_kind === "subagent" && !shown.found.has(listing.id)) continue;
    if (words.length > 0 && !shown.found.has(listing.id) && !matches(listing, words)) continue;
    groups.get(shown.asking.has(listing.id) ? "waiting" : groupOf(listing, shown.today))?.push(listing);
  }
  const filled = ORDER.map((name) => ({ name, items: groups.get(name) ?? [] })).filter(({ items }) => items.length > 0);
  // Position orders equal times, so that rows never swap places without a reason.
  for (const { items } of filled) items.sort((a, b) => b.updated_at - a.updated_at || b.pos - a.pos);
  return filled;
}

function matches(listing: Listing, words: readonly string[]): boolean {
  const text = `${listing.title} ${listing.last_line}`.toLowerCase();
  return words.every((word) => text.includes(word));
}
