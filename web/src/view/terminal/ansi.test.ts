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
  expect(readAnsi("\u001b[38;2;10;20;30mx\u001b[0my").map((run) => run.style)).toEqual(["ansi-8", ""]);
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

test("a background, a palette and a true colour become one of ours, and end", () => {
  const styles = (text: string) => readAnsi(text).map((run) => run.style);
  expect(styles("\u001b[41mx\u001b[49my")).toEqual(["ansi-on-1", ""]);
  expect(styles("\u001b[38;5;196mred\u001b[39m")).toEqual(["ansi-1"]);
  expect(styles("\u001b[38;2;10;200;30mgreen\u001b[0m!")).toEqual(["ansi-2", ""]);
  expect(styles("\u001b[48;5;236mgrey")).toEqual(["ansi-on-8"]);
  expect(styles("\u001b[7;9mboth\u001b[27;29m.")).toEqual(["ansi-strike ansi-inverse", ""]);
});

test("what is no colour is dropped whole: titles, links, strings for the terminal, cursor moves", () => {
  const hostile = "a\u001b]0;title\u0007b\u001b]8;;https://evil.example\u001b\\c\u001bP+q544e\u001b\\d\u001b[2J\u001b[1;1He\u001b[>4;2mf\u001b(0g\u001b7h";
  expect(readAnsi(hostile)).toEqual([{ text: "abcdefgh", style: "" }]);
});

test("what reorders or hides is shown", () => {
  expect(readAnsi("rm \u202egnp.exe\u200b")).toEqual([{ text: "rm ⟨202E⟩gnp.exe⟨200B⟩", style: "" }]);
});
