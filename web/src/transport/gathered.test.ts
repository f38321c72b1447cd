import { expect, test } from "vitest";
import { Gathered, GATHER_MS } from "./gathered";

function setUp() {
  const timers: (() => void)[] = [];
  const given: string[] = [];
  const lines = new Gathered(
    (delayMs, run) => {
      expect(delayMs).toBe(GATHER_MS);
      timers.push(run);
    },
    (text) => given.push(text),
  );
  const rest = (): void => timers.shift()?.();
  return { lines, given, timers, rest };
}

test("what comes after silence is passed on at once", () => {
  const { lines, given, rest } = setUp();
  lines.add("a");
  expect(given).toEqual(["a"]);
  rest();
  lines.add("b");
  expect(given).toEqual(["a", "b"]);
});

test("what comes soon after is passed on together, in its order", () => {
  const { lines, given, rest } = setUp();
  lines.add("a");
  lines.add("b\nc");
  lines.add("d");
  expect(given).toEqual(["a"]);
  rest();
  expect(given).toEqual(["a", "b\nc\nd"]);
  lines.add("e");
  expect(given).toHaveLength(2);
  rest();
  expect(given.at(-1)).toBe("e");
});

test("nothing is passed on, and no timer runs, while nothing comes", () => {
  const { lines, given, timers, rest } = setUp();
  lines.add("a");
  rest();
  expect(given).toEqual(["a"]);
  expect(timers).toHaveLength(0);
});

test("the end passes on what waits, once", () => {
  const { lines, given, timers, rest } = setUp();
  lines.add("a");
  lines.add("b");
  lines.passOn();
  expect(given).toEqual(["a", "b"]);
  expect(timers).toHaveLength(1);
  rest();
  expect(given).toEqual(["a", "b"]);
});
