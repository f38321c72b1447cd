/** What the search panel holds while the server looks through all conversations. */

import type { WireError } from "../protocol/events.gen";
import type { SearchHit } from "../protocol/wire";

export interface Search {
  readonly phase: "idle" | "typing" | "loading" | "ready" | "failed";
  readonly query: string;
  /** Null: everywhere. */
  readonly conversation: string | null;
  readonly hits: readonly SearchHit[];
  readonly error: WireError | null;
}

export const NO_SEARCH: Search = { phase: "idle", query: "", conversation: null, hits: [], error: null };
