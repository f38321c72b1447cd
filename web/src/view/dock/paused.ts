/** A queue that stands still because somebody stopped the agent and kept what waited. */

import type { QueueItem, State, TurnSummary } from "../../protocol/events.gen";
import { work } from "../../text.work";
import { isAnothers, isHere, type Me } from "../me";

/** The turn that a person stopped, as long as nothing runs after it. */
export function stoppedTurn({ turn, last_turn }: State): TurnSummary | null {
  return turn === null && last_turn?.stopped === "user" ? last_turn : null;
}

export function heldOf(queue: readonly QueueItem[]): number {
  return queue.filter((item) => item.held).length;
}

/** One by one messages are held while they are edited. More at a time, or one after a stop, wait for a person's word. */
export function isPaused(held: number, stopped: TurnSummary | null): boolean {
  return held > (stopped ? 0 : 1);
}

export function sayPaused(stopped: TurnSummary | null, me: Me): string {
  if (stopped === null) return work.queue.heldAll;
  const by = stopped.by;
  if (!by || isHere(by, me)) return work.queue.paused;
  return isAnothers(by, me) ? work.queue.pausedBy(by.user ?? "") : work.queue.pausedElsewhere;
}
