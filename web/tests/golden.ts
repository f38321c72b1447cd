/** The golden logs and the states they must fold to, shared with Python. */

import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { EMPTY_STATE } from "../src/model/fold";
import type { State } from "../src/protocol/events.gen";
import { type AnyEvent, readEvent } from "../src/protocol/guards";

const FOLDER = join(import.meta.dirname, "../../tests/golden");

export const NAMES: readonly string[] = readdirSync(FOLDER)
  .filter((name) => name.endsWith(".jsonl"))
  .map((name) => name.slice(0, -".jsonl".length))
  .sort();

export function linesOf(name: string): string[] {
  return readFileSync(join(FOLDER, `${name}.jsonl`), "utf8").split("\n").filter(Boolean);
}

/** Read anew at each call: a fold that changed its events would go unnoticed with shared ones. */
export function eventsOf(name: string): AnyEvent[] {
  return linesOf(name).map((line) => {
    const event = readEvent(JSON.parse(line));
    if (event === null) throw new Error(`no event: ${line}`);
    return event;
  });
}

export function statesOf(name: string): Map<number, State> {
  const states: Record<string, State> = JSON.parse(readFileSync(join(FOLDER, `${name}.states.json`), "utf8"));
  return new Map(Object.entries(states).map(([seq, state]) => [Number(seq), state]));
}

/** Where the fold of a log begins: at nothing, or at the snapshot before its first line. */
export function startOf(name: string): State {
  const first = eventsOf(name)[0];
  const seq = first === undefined || first.type === "log.compacted" ? 1 : first.seq;
  return statesOf(name).get(seq - 1) ?? EMPTY_STATE;
}
