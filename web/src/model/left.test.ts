import { expect, test } from "vitest";
import { freshFrom, Left } from "./left";
import type { Row } from "./rows";

function rows(...seqs: number[]): Row[] {
  return seqs.map((seq) => ({ kind: "user", key: String(seq), seq }) as unknown as Row);
}

function storage() {
  let kept: string | null = null;
  return { get: () => kept, set: (_: string, value: string | null) => void (kept = value) };
}

test("what came after the last event seen is new, for as long as one stays", () => {
  const left = new Left(storage());
  left.arrive("c", 5);
  left.settle("c", rows(2, 5, 8));
  expect(left.seqIn("c")).toBe(5);
  left.settle("c", rows(2, 5, 8, 9));
  expect(left.seqIn("c")).toBe(5);
  left.arrive("d", 1);
  expect(left.seqIn("c")).toBeNull();
});

test("what comes while one reads is not new", () => {
  const left = new Left(storage());
  left.arrive("c", 8);
  left.settle("c", rows(2, 5, 8));
  left.settle("c", rows(2, 5, 8, 9));
  expect(left.seqIn("c")).toBeNull();
});

test("a conversation that was never seen here holds nothing new", () => {
  const left = new Left(storage());
  left.arrive("c", null);
  left.settle("c", rows(2, 5));
  expect(left.seqIn("c")).toBeNull();
});

test("a reload draws the line where it was", () => {
  const tab = storage();
  const before = new Left(tab);
  before.arrive("c", 5);
  before.settle("c", rows(2, 8));
  const after = new Left(tab);
  after.arrive("c", 8);
  after.settle("c", rows(2, 8));
  expect(after.seqIn("c")).toBe(5);
});

test("a page that is looked at again shows what came meanwhile", () => {
  const left = new Left(storage());
  left.arrive("c", null);
  left.back("c", 5);
  left.settle("c", rows(2, 5, 8));
  expect(left.seqIn("c")).toBe(5);
});

test("the line stands before the first new row, never before all or before the activity alone", () => {
  expect(freshFrom(rows(2, 5, 8, 9), 5)).toBe(2);
  expect(freshFrom(rows(2, 5), 5)).toBe(-1);
  expect(freshFrom([...rows(2), { kind: "activity", key: "activity", seq: 2 } as unknown as Row], 2)).toBe(-1);
});
