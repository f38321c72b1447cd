import { expect, test } from "vitest";
import { editOf, linked, type Press, type Selection } from "./format";

const NONE = { key: "", code: "", command: false, shift: false };
const BOLD: Press = { ...NONE, key: "b", command: true };
const ITALIC: Press = { ...NONE, key: "i", command: true };
const CODE: Press = { ...NONE, key: "e", command: true };
const FENCE: Press = { ...NONE, code: "KeyE", command: true, shift: true };
const NUMBERS: Press = { ...NONE, code: "Digit7", command: true, shift: true };
const BULLETS: Press = { ...NONE, code: "Digit8", command: true, shift: true };
const LINE: Press = { ...NONE, key: "Enter", shift: true };

/** `|` marks the selection: one for a cursor, two for its ends. */
function at(marked: string): Selection {
  const start = marked.indexOf("|");
  const value = marked.replaceAll("|", "");
  const second = marked.indexOf("|", start + 1);
  return { value, start, end: second === -1 ? start : second - 1 };
}

function after(marked: string, press: Press): string | null {
  const selection = at(marked);
  const edit = editOf(selection, press);
  if (edit === null) return null;
  const value = selection.value.slice(0, edit.from) + edit.text + selection.value.slice(edit.to);
  const ends = edit.start === edit.end ? "|" : `|${value.slice(edit.start, edit.end)}|`;
  return value.slice(0, edit.start) + ends + value.slice(edit.end);
}

test.each<[Press, string, string]>([
  [BOLD, "so |brave| a", "so **|brave|** a"],
  [BOLD, "so **|brave|** a", "so |brave| a"],
  [BOLD, "so |", "so **|**"],
  [ITALIC, "|new|", "*|new|*"],
  [ITALIC, "**|new|**", "***|new|***"],
  [CODE, "run |make| it", "run `|make|` it"],
  [FENCE, "see |a\nb| there", "see \n```\n|a\nb|\n```\n there"],
  [FENCE, "|", "```|\n\n```"],
  [BULLETS, "|a\nb|", "|- a\n- b|"],
  [BULLETS, "|- a\n- b|", "|a\nb|"],
  [NUMBERS, "|a\nb|\nc", "|1. a\n2. b|\nc"],
])("a key marks words and takes the mark away again", (press, before, expected) => {
  expect(after(before, press)).toBe(expected);
});

test.each([
  ["- a|", "- a\n- |"],
  ["  * a| b", "  * a\n  * | b"],
  ["9. a|", "9. a\n10. |"],
  ["- [x] a|", "- [x] a\n- [ ] |"],
  ["> a|", "> a\n> |"],
  ["one\n- |", "one\n|"],
  ["```py|", "```py\n|\n```"],
  ["```\n  a|\n```", "```\n  a\n  |\n```"],
])("a new line goes on as the one above began: %j", (before, expected) => {
  expect(after(before, LINE)).toBe(expected);
});

test.each(["plain|", "-no list|", "```\n- a|\n```"])("a new line is left to the browser where nothing goes on: %j", (before) => {
  expect(after(before, LINE)).toBeNull();
});

test("an address pasted over words makes them a link, and only then", () => {
  expect(linked(at("see |the docs| now"), "https://example.org/a")?.text).toBe("[the docs](https://example.org/a)");
  expect(linked(at("see | now"), "https://example.org/a")).toBeNull();
  expect(linked(at("|the docs|"), "javascript:alert(1)")).toBeNull();
  expect(linked(at("|https://a.org|"), "https://example.org")).toBeNull();
});
