import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { approvalLines, mayAllow, planLines, rowsLeft } from "./approvaltext";

const FOLDER = join(import.meta.dirname, "../../../tests/golden/texts");

interface Golden {
  cases: { name: string; preview: string | null; input: unknown; lines: [string, string[]][] }[];
  plans: { name: string; plan: Parameters<typeof planLines>[0]; lines: [string, string[]][] }[];
  reading: { rows: number | null; reached: number; left: number; may_allow: boolean }[];
}

const golden = JSON.parse(readFileSync(join(FOLDER, "approvals.json"), "utf8")) as Golden;

describe("what an approval shows is the same in every client", () => {
  test.each(golden.cases)("$name", ({ preview, input, lines }) => {
    expect(approvalLines(preview, input).map(({ kind, pieces }) => [kind, pieces])).toEqual(lines);
  });
});

describe("what a plan shows is the same in every client", () => {
  test.each(golden.plans)("$name", ({ plan, lines }) => {
    expect(planLines(plan).map(({ kind, pieces }) => [kind, pieces])).toEqual(lines);
  });
});

test("no client allows before its rows are laid out and the last was in sight", () => {
  for (const { rows, reached, left, may_allow } of golden.reading) {
    expect([rowsLeft(rows, reached), mayAllow(rows, reached)]).toEqual([left, may_allow]);
  }
});

test("padding that never quite repeats is shown whole", () => {
  const lines = approvalLines(`${`${"a".repeat(79)}b`.repeat(3000)} ${" ".repeat(31)}x`.repeat(2), null);
  expect(lines).toHaveLength(1);
});
