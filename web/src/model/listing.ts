/** The list of conversations: which rows, in which group, in which order. Pure; the store feeds it. */

import type { Listing, WireError } from "../protocol/events.gen";

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
