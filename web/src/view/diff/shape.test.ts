import { expect, test } from "vitest";
import { parseUnified, type DiffLine } from "../../model/lines";
import { pairs, stretches } from "./shape";

function lines(signs: string): DiffLine[] {
  return [...signs].map((sign, at) => ({ sign: sign as DiffLine["sign"], text: String(at) }));
}

test("long unchanged stretches are folded, three lines are kept around a change", () => {
  const found = stretches(lines(`${" ".repeat(10)}-+${" ".repeat(12)}+${" ".repeat(5)}`));
  expect(found.map(({ folded, lines: { length } }) => [folded, length])).toEqual([
    [true, 7],
    [false, 8],
    [true, 6],
    [false, 9],
  ]);
  expect(found.flatMap((one) => one.lines)).toHaveLength(30);
});

test("short stretches, and a text without a change, stay whole", () => {
  expect(stretches(lines("-  ".repeat(3))).map(({ folded }) => folded)).toEqual([false]);
  expect(stretches(lines(" ".repeat(40))).map(({ folded }) => folded)).toEqual([false]);
  expect(stretches([])).toEqual([]);
});

test("old and new stand beside each other, and what has no counterpart stands alone", () => {
  const found = pairs(lines("@ --+ +-+"));
  expect(found.map(([before, after]) => `${before?.sign ?? "."}${after?.sign ?? "."}`)).toEqual(["@@", "  ", "-+", "-.", "  ", ".+", "-+"]);
});

test("what a patch says of a file beside its lines is a heading, never a line of it", () => {
  const patch = "diff --git a/x b/y\nsimilarity index 90%\nrename from x\nrename to y\n@@ -1 +1 @@\n-a\n+b\n\\ No newline at end of file\n";
  expect(parseUnified(patch)).toEqual([
    { sign: "@", text: "x → y" },
    { sign: "@", text: "@@ -1 +1 @@" },
    { sign: "-", text: "a" },
    { sign: "+", text: "b" },
  ]);
  expect(parseUnified("diff --git a/p b/p\nnew file mode 100644\nBinary files /dev/null and b/p differ\n").map(({ text }) => text)).toEqual([
    "diff --git a/p b/p",
    "Binary files /dev/null and b/p differ",
  ]);
});
