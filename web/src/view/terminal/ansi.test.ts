import { expect, test } from "vitest";
import { readAnsi } from "./ansi";

test("colours become runs, and end where they end", () => {
  expect(readAnsi("a \u001b[1;31mred\u001b[0m b")).toEqual([
    { text: "a ", style: "" },
    { text: "red", style: "ansi-bold ansi-1" },
    { text: " b", style: "" },
  ]);
});

test("bright and 256-colour codes map to the sixteen", () => {
  expect(readAnsi("\u001b[94mx")[0]?.style).toBe("ansi-12");
  expect(readAnsi("\u001b[38;5;2mx")[0]?.style).toBe("ansi-2");
  expect(readAnsi("\u001b[38;2;10;20;30mx\u001b[0my")[0]?.style).toBe("");
});

test("no other escape survives", () => {
  const output = "\u001b[2J\u001b[1;1Hhi\u001b]0;title\u0007 \u001b]8;;http://x\u001b\\link\u001b]8;;\u001b\\\u0007\u0008";
  expect(readAnsi(output).map((run) => run.text).join("")).toBe("hi link");
});

test("a line that is written again shows its last writing", () => {
  expect(readAnsi("10 %\r50 %\r100 %\ndone\r\n").map((run) => run.text).join("")).toBe("100 %\ndone\n");
});

test("an escape cut off at the end does no harm", () => {
  expect(readAnsi("ok\u001b[3")[0]?.text.startsWith("ok")).toBe(true);
});
