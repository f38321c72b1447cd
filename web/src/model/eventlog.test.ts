import { readFileSync, readdirSync } from "node:fs";
import { expect, test } from "vitest";
import { readEvent } from "../protocol/guards";
import { EventLog, gistOf } from "./eventlog";
import { EMPTY_STATE, fold } from "./fold";

const GOLDEN = new URL("../../../tests/golden/", import.meta.url);

function linesOf(name: string): string[] {
  return readFileSync(new URL(name, GOLDEN), "utf8").trim().split("\n");
}

function folded(lines: readonly string[]) {
  return fold(EMPTY_STATE, lines.flatMap((line) => readEvent(JSON.parse(line)) ?? []));
}

test("the view at every event of every golden log is the fold of what came until then", () => {
  const names = readdirSync(GOLDEN).filter((name) => name.endsWith(".jsonl"));
  expect(names.length).toBeGreaterThan(3);
  for (const name of names) {
    const lines = linesOf(name);
    const log = new EventLog();
    for (let at = 0; at < lines.length; at += 7) log.take(lines.slice(at, at + 7));
    const step = Math.max(1, Math.floor(lines.length / 40));
    for (let count = 1; count <= lines.length; count += step) {
      const seq = JSON.parse(lines[count - 1] as string).seq as number;
      expect(log.at(seq), `${name} at ${seq}`).toEqual(folded(lines.slice(0, count)));
    }
    expect(log.state).toEqual(folded(lines));
  }
});

test("a line that is told twice is kept once, and as it was", () => {
  const lines = linesOf("long.jsonl").slice(0, 20);
  const log = new EventLog();
  log.take(lines);
  log.take(lines.slice(10));
  expect(log.entries.map(({ line }) => line)).toEqual(lines);
});

test("a view in place of events leaves a gap, and what follows is folded onto it", () => {
  const lines = linesOf("long.jsonl");
  const log = new EventLog();
  log.take(lines.slice(0, 10));
  log.adopt(folded(lines.slice(0, 30)));
  log.take(lines.slice(30, 40));
  expect(log.gaps).toEqual([{ first: 11, last: 30 }]);
  expect(log.rows(() => true).map((row) => (row.kind === "gap" ? `${row.gap.first}-${row.gap.last}` : row.entry.seq))).toEqual([
    ...Array.from({ length: 10 }, (_, at) => at + 1),
    "11-30",
    ...Array.from({ length: 10 }, (_, at) => at + 31),
  ]);
  expect(log.at(10)).toEqual(folded(lines.slice(0, 10)));
  expect(log.at(15)).toEqual(folded(lines.slice(0, 30)));
  expect(log.at(35)).toEqual(folded(lines.slice(0, 35)));
});

test("what is too much is not taken, and said", () => {
  const lines = linesOf("long.jsonl");
  const log = new EventLog(1000);
  log.take(lines);
  expect(log.isFull).toBe(true);
  expect(log.entries.length).toBeLessThan(lines.length);
  expect(log.state.seq).toBe(log.entries.at(-1)?.seq);
});

test("lines that cannot be read are passed over, unknown types are kept", () => {
  const log = new EventLog();
  log.take(["{broken", '{"type":"of.tomorrow","seq":1,"id":"a","ts":5,"conversation":"c"}', "null"]);
  expect(log.entries).toEqual([expect.objectContaining({ seq: 1, first: 1, type: "of.tomorrow", ts: 5 })]);
  expect(log.types).toEqual(new Map([["of.tomorrow", 1]]));
});

test("an event in a few words", () => {
  expect(gistOf('{"type":"text.delta","text":"two\\nlines"}')).toBe("two lines");
  expect(gistOf('{"type":"turn.finished","outcome":"failed"}')).toBe("failed");
  expect(gistOf('{"type":"message.added","content":[{"type":"text","text":"Hello"},{"type":"image"}]}')).toBe('Hello {"type":"image"}');
  expect(gistOf('{"type":"x"}')).toBe("");
});
