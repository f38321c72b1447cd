/**
 * How many lines a call adds and removes, as its arguments tell. Comparing texts is loaded with the rest of the renderer, and
 * the store says so here before a row is shown.
 */

import type { Diff, DiffLine } from "./lines";

export interface Stat {
  added: number;
  removed: number;
}

interface Lines {
  diffOfCall(name: string, input: unknown): Diff | null;
  statOf(lines: readonly DiffLine[]): Stat;
}

let loaded: Lines | null = null;

export function compareWith(lines: Lines): void {
  loaded = lines;
}

/** Null when the arguments tell no change. */
export function statOfCall(name: string, input: unknown): Stat | null {
  const diff = loaded?.diffOfCall(name, input);
  return loaded && diff ? loaded.statOf(diff.lines) : null;
}
