import { expect, test } from "vitest";
import type { Compression } from "../protocol/events.gen";
import { compressedRanges, savedPercent } from "./compressed";

let seq = 0;
function taken(stage: Compression["stage"], horizon: number, fields: Partial<Compression> = {}): Compression {
  seq += 1;
  return { stage, horizon, strength: "low", ts: 0, seq, before_tokens: 100, after_tokens: 80, summary: null, ...fields };
}

test("stages that reach equally far are one range, from the most to the least", () => {
  const [range, ...others] = compressedRanges([
    taken("deduplicate", 9),
    taken("summarize", 9, { strength: "high", before_tokens: 80, after_tokens: 38, summary: "Wet." }),
  ]);
  expect(others).toEqual([]);
  expect(range).toMatchObject({ horizon: 9, strength: "high", beforeTokens: 100, afterTokens: 38, summary: "Wet." });
  expect(range && savedPercent(range)).toBe(62);
});

test("of each stage the furthest horizon counts, and ranges stand in the order of the transcript", () => {
  const ranges = compressedRanges([taken("limit", 20), taken("shorten", 5), taken("limit", 12), taken("limit", 30)]);
  expect(ranges.map(({ horizon }) => horizon)).toEqual([5, 30]);
});

test("a compression of nothing is no range", () => {
  expect(compressedRanges([taken("limit", 0)])).toEqual([]);
});
