/**
 * What the polite live region says: a turn's start, a request that needs a person, a turn's end, and finished sentences
 * at most every two seconds. Never single tokens: a screen reader cannot follow them.
 */

import type { Outcome, RequestKind, State } from "../protocol/events.gen";

export type Announcement =
  | { kind: "turn_started"; agent: string }
  | { kind: "request_opened"; request: RequestKind; title: string | null; tool: string | null }
  | { kind: "turn_ended"; outcome: Outcome; durationMs: number | null }
  | { kind: "text"; text: string };

export class Announcer {
  constructor(_options?: { sentences?: boolean; intervalMs?: number }) {}

  /** What to say now that this is the state. Call it at each flush and once `nextAt` has passed. */
  say(_state: State, _now: number): readonly Announcement[] {
    throw new Error("stub");
  }

  /** When there will be more to say although nothing changes, or null. */
  get nextAt(): number | null {
    return null;
  }
}
