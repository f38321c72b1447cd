/**
 * Recorded compressions in the view, as `src/palaver/core/fold/compressions.py` says it: of each stage the furthest horizon
 * counts, and of a stage at its strongest the furthest besides. Those always stay; of the others the latest. Pure.
 */

import type { Compression, ContextCompressed } from "../protocol/events.gen";

/** Enough to see how it came about. */
const KEEP_LATEST = 20;

export function compressed(event: ContextCompressed): Compression {
  const { stage, strength, ts, seq, before_tokens, after_tokens } = event;
  const { horizon = 0, summary = null } = event;
  return { stage, horizon, strength, ts, seq, before_tokens, after_tokens, summary };
}

export function bounded(all: Compression[]): Compression[] {
  if (all.length <= KEEP_LATEST) return all;
  const furthest = new Map<string, Compression>();
  for (const one of all) {
    for (const key of [one.stage, `${one.stage} ${one.strength === "high" ? "high" : ""}`]) {
      const known = furthest.get(key);
      if (known === undefined || one.horizon >= known.horizon) furthest.set(key, one);
    }
  }
  const counting = new Set([...furthest.values()].map((one) => one.seq));
  const split = all.length - KEEP_LATEST;
  return all.filter((one, place) => place >= split || counting.has(one.seq));
}
