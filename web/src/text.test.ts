import { expect, test } from "vitest";
import { ago, bytes, count, day, duration, elapsed, list, money, said, shortPaths, text, tokens } from "./text";

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

test("the tab counts what waits", () => {
  expect([text.title(0, 0, null), text.title(2, 1, "Garden"), text.title(0, 1, "Garden")]).toEqual([
    "Palaver",
    "(2) Garden · Palaver",
    "• Garden · Palaver",
  ]);
});

test("a sentence of the server is shown without a programmer's quotes", () => {
  expect(said("It stands in the file `token` of `~/x y`.")).toBe("It stands in the file “token” of “~/x y”.");
  expect(said("A lone ` stays.")).toBe("A lone ` stays.");
});

test("several things are listed as in a sentence", () => {
  expect([list("a"), list("a", false, "b"), list("a", "b", "c"), list(false)]).toEqual(["a", "a and b", "a, b and c", ""]);
  expect(text.knowledge.line(2, 1, 0)).toBe("Recalled 2 notes and 1 conversation");
});

test("an agent says what it answers with, to a person", () => {
  const { runsOn } = text.fresh;
  expect([runsOn("api", "keeper-1"), runsOn("api", null)]).toEqual(["Answers with keeper-1", "Answers with the server's model"]);
  expect([runsOn("claude", "opus"), runsOn("codex", null)]).toEqual(["Claude Code with opus", "Codex"]);
  expect(runsOn("demo", null)).toBe("A demonstration without a model");
});

test("a command or a sentence is shown without the long way to a program", () => {
  expect(shortPaths("/home/ada/.local/bin/codex login")).toBe("~/.local/bin/codex login");
  expect(shortPaths("Nobody is logged in. Run /Users/ada/.local/bin/codex login")).toBe("Nobody is logged in. Run ~/.local/bin/codex login");
  expect(shortPaths("Run `/Users/ada/.local/bin/codex`.")).toBe("Run `~/.local/bin/codex`.");
  expect(shortPaths("/srv/tools/node_modules/@openai/codex/vendor/x86_64/codex/codex login")).toBe("…/codex/codex login");
  expect(shortPaths("npm install -g @earendil-works/pi, then /login")).toBe("npm install -g @earendil-works/pi, then /login");
});
