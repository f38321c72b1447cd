import { expect, test } from "vitest";
import { plainly, visible } from "./visible";

test("control characters are shown as pictures", () => {
  expect(visible("rm\u0000 \u001b[2K")).toBe("rm␀ ␛[2K");
});

test("marks that reorder or hide are shown by their number", () => {
  expect(visible("a\u202eb\u200bc\ufeff")).toBe("a⟨202E⟩b⟨200B⟩c⟨FEFF⟩");
});

test("ordinary text, tabs, new lines and other scripts stay as they are", () => {
  const text = "naïve\tקוד\n日本 🌱";
  expect(visible(text)).toBe(text);
});

test("a second alphabet that nobody sees is shown", () => {
  expect(visible("a\u{e0041}b")).toBe("a⟨E0041⟩b");
  expect(plainly("a\u{e0041}b")).toBe("a⟨E0041⟩b");
});

test("an agent's words keep what other scripts and emoji are made of, and lose what reorders or hides", () => {
  const prose = "می‌خواهم 👩‍👩‍👧 \u200fעברית\u200f co\u00adoperate\r\n";
  expect(plainly(prose)).toBe(prose);
  expect(plainly("a\u202eb\u2066c\u200bd\u001b[31m")).toBe("a⟨202E⟩b⟨2066⟩c⟨200B⟩d␛[31m");
});
