/** Waiting between tries: exponential, with jitter, so that a thousand pages do not return at the same moment. */

const FIRST_MS = 250;
const LONGEST_MS = 10_000;

/** The wait before try number `attempt` (from 0): half of it certain, half of it chance. */
export function backoffMs(attempt: number, random: () => number): number {
  const full = Math.min(LONGEST_MS, FIRST_MS * 2 ** Math.min(attempt, 10));
  return Math.max(FIRST_MS, full / 2 + (full / 2) * random());
}
