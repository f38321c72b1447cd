import { expect, test } from "vitest";
import { visible } from "./visible";

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
