/** A subagent in words: what state it is in, for how long, what it cost. Pure. */

import type { Listing, Subagent } from "../../protocol/events.gen";
import { duration, money } from "../../measures";
import { text } from "../../text";
import { work } from "../../text.work";
import { plainly } from "../controls/visible";

export type SubagentState = keyof typeof work.subagent.states;

/** `waiting`: how many requests of it and of those below it wait for a person. */
export function stateOf({ status, run }: Subagent, waiting: number): SubagentState {
  if (status !== "running") return status;
  if (waiting > 0) return "waiting";
  return run === null ? "starting" : "running";
}

/** Of one that is known only by its row in the list. */
export function stateOfRow({ turn, last_turn, status }: Listing, waiting: number): SubagentState {
  if (waiting > 0) return "waiting";
  if (turn !== null) return "running";
  if (last_turn === null) return "starting";
  return status === "error" ? "failed" : "completed";
}

/** "done · 12 s · $0.02". While it works its time is shown by a clock. */
export function sayState(child: Subagent, waiting: number): string {
  const { started_at, finished_at, cost_usd } = child;
  const over = child.status !== "running";
  return text.join(
    work.subagent.states[stateOf(child, waiting)],
    over && started_at !== null && finished_at !== null && duration(finished_at - started_at),
    cost_usd !== null && cost_usd > 0 && money(cost_usd),
  );
}

export function firstLine(words: string): string {
  const line = words.split("\n").find((one) => one.trim() !== "") ?? "";
  return plainly(line.trim());
}

/** "3 subagents at work · 1 waits for you". */
export function sayTogether(running: number, waiting: number): string {
  return text.join(work.subagent.atWork(running), waiting > 0 && work.subagent.waits(waiting));
}
