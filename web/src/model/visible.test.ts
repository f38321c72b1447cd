import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { plainly, visible } from "./visible";

const FOLDER = join(import.meta.dirname, "../../../tests/golden/texts");
const read = (name: string): unknown => JSON.parse(readFileSync(join(FOLDER, name), "utf8"));

test("hidden and misleading characters are shown as in every client", () => {
  for (const [text, shown] of read("visible.json") as [string, string][]) expect(visible(text)).toBe(shown);
});

test("what is hidden is exactly the table that Python reads", () => {
  const found: [number, number][] = [];
  for (let code = 0; code <= 0x10ffff; code += 1) {
    if (visible(String.fromCodePoint(code)) === String.fromCodePoint(code)) continue;
    const last = found.at(-1);
    if (last && last[1] === code - 1) last[1] = code;
    else found.push([code, code]);
  }
  expect(found).toEqual(read("hidden_characters.json"));
});

test("what is visible already stays as it is", () => {
  const shown = visible("a\u202e\u200bb\u001b");
  expect(visible(shown)).toBe(shown);
});

test("a second alphabet that nobody sees is shown in prose too", () => {
  expect(plainly("a\u{e0041}b")).toBe("a⟨E0041⟩b");
});

test("an agent's words keep what other scripts and emoji are made of, and lose what reorders or hides", () => {
  const prose = "می‌خواهم 👩‍👩‍👧 \u200fעברית\u200f co\u00adoperate\r\n";
  expect(plainly(prose)).toBe(prose);
  expect(plainly("a\u202eb\u2066c\u200bd\u001b[31m")).toBe("a⟨202E⟩b⟨2066⟩c⟨200B⟩d␛[31m");
});
