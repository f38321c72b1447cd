import { expect, test } from "vitest";
import { ago, bytes, count, day, duration, elapsed, money, tokens } from "./measures";

test("durations are said in the unit a person would use", () => {
  expect([0, 240, 999, 12_300, 60_000, 185_000, 4_320_000].map(duration)).toEqual([
    "0.1 s",
    "0.2 s",
    "1 s",
    "12 s",
    "1 min 00 s",
    "3 min 05 s",
    "1 h 12 min",
  ]);
});

test("a running time shows whole seconds and never runs backwards", () => {
  expect([-500, 0, 999, 1999, 61_999].map(elapsed)).toEqual(["0 s", "0 s", "0 s", "1 s", "1 min 01 s"]);
});

test("sizes, tokens and money are short", () => {
  expect([12, 2048, 50_000, 3_500_000].map(bytes)).toEqual(["12 B", "2.0 KB", "49 KB", "3.3 MB"]);
  expect([830, 12_400, 250_000, 1_200_000].map(tokens)).toEqual(["830", "12.4k", "250k", "1.2M"]);
  expect([0, 0.001, 1.5].map(money)).toEqual(["$0", "< $0.01", "$1.50"]);
});

test("one is singular", () => {
  expect([count(1, "file"), count(2, "file"), count(1200, "search", "searches")]).toEqual(["1 file", "2 files", "1,200 searches"]);
});

test("days are named from where the reader is", () => {
  const now = new Date(2026, 10, 15, 14, 0).getTime();
  expect(day(new Date(2026, 10, 15, 1).getTime(), now)).toBe("Today");
  expect(day(new Date(2026, 10, 14, 23).getTime(), now)).toBe("Yesterday");
  expect(day(new Date(2026, 10, 11).getTime(), now)).toBe("Wednesday");
  expect(day(new Date(2026, 9, 4).getTime(), now)).toBe("4 October");
  expect(day(new Date(2025, 9, 4).getTime(), now)).toBe("4 October 2025");
  expect(ago(now - 4 * 60_000, now)).toBe("4 min");
  expect(ago(now + 5000, now)).toBe("now");
});
