/** Finding text in the messages at hand, and what the search panel holds while the server looks through all of them. */

import type { Message, WireError } from "../protocol/events.gen";
import type { SearchHit } from "../protocol/wire";

export interface LocalHit {
  readonly messageId: string;
  readonly seq: number;
  /** The key of the row it is in. */
  readonly rowKey: string;
  readonly before: string;
  readonly match: string;
  readonly after: string;
}

export interface Search {
  readonly phase: "idle" | "typing" | "loading" | "ready" | "failed";
  readonly query: string;
  /** Null: everywhere. */
  readonly conversation: string | null;
  readonly hits: readonly SearchHit[];
  readonly error: WireError | null;
}

export const NO_SEARCH: Search = { phase: "idle", query: "", conversation: null, hits: [], error: null };

/** Hits in the order of the transcript. Case-insensitive unless the query has a capital. */
export function findInMessages(_messages: readonly Message[], _query: string, _limit?: number): LocalHit[] {
  throw new Error("stub");
}
