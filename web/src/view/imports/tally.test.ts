import { expect, test } from "vitest";
import type { Advance } from "../../transport/api.later";
import { counted, gain, NOTHING, sayTally } from "./tally";

function tallyOf(...outcomes: string[]) {
  const lines = outcomes.map((outcome, at): Advance => ({ done: at + 1, of: outcomes.length, taken: { conversation: `c${at}`, outcome } }));
  return lines.reduce(counted, NOTHING);
}

test("a tally counts what became of each file", () => {
  const lines: Advance[] = [
    { done: 0, of: 4 },
    { done: 1, of: 4, taken: { conversation: "a", outcome: "made" }, skipped_lines: 2 },
    { done: 2, of: 4, taken: { conversation: "b", outcome: "known" } },
    { done: 3, of: 4, problem: "It is no session." },
    // Not of the project that was asked for.
    { done: 4, of: 4 },
  ];
  const tally = lines.reduce(counted, NOTHING);
  expect(tally).toEqual({ done: 4, of: 4, outcomes: { made: 1, known: 1 }, unreadable: 1, skippedLines: 2 });
  expect(gain(tally)).toBe(1);
});

test("what would happen and what happened are two sentences", () => {
  const tally = tallyOf("made", "made", "grown", "known", "taken_up");
  expect(sayTally(tally, true)).toBe("Would add 2 and continue 1 · 1 known · 1 gone on with here");
  expect(sayTally(tally, false)).toBe("Added 2 and continued 1 · 1 known · 1 gone on with here");
  expect(sayTally(tallyOf("grown"), true)).toBe("Would continue 1");
});

test("nothing new is said, and every loss is counted", () => {
  expect(sayTally(tallyOf("known"), true)).toBe("Nothing new · 1 known");
  expect(sayTally(tallyOf("known"), false)).toBe("Nothing was added · 1 known");
  const damaged = counted(NOTHING, { done: 1, of: 1, problem: "no", skipped_lines: 3 });
  expect(sayTally(damaged, false)).toBe("Nothing was added · 1 file could not be read · 3 damaged lines skipped");
  expect(sayTally(tallyOf("of_tomorrow"), false)).toBe("Nothing was added · 1 of tomorrow");
});
