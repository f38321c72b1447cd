import { expect, test } from "vitest";
import { diffOfCall, diffText, isUnified, parseUnified, statOf, type DiffLine } from "./lines";

/** Applying a diff of whole texts gives the new one back. */
function after(lines: readonly DiffLine[]): string[] {
  return lines.filter((line) => line.sign === " " || line.sign === "+").map((line) => line.text);
}

function before(lines: readonly DiffLine[]): string[] {
  return lines.filter((line) => line.sign === " " || line.sign === "-").map((line) => line.text);
}

test("a diff keeps what both sides share and marks the rest", () => {
  const lines = diffText("a\nb\nc\n", "a\nx\nc\n");
  expect(lines.map((line) => line.sign + line.text)).toEqual([" a", "-b", "+x", " c"]);
});

test("a diff of any two texts leads from one to the other", () => {
  // The same numbers on every run.
  let seed = 7;
  const next = (n: number): number => {
    seed = (seed * 1103515245 + 12345) % 2147483648;
    return seed % n;
  };
  for (let round = 0; round < 200; round += 1) {
    const old = Array.from({ length: next(7) }, () => "abc"[next(3)] ?? "a");
    const fresh = Array.from({ length: next(7) }, () => "abc"[next(3)] ?? "a");
    const lines = diffText(old.join("\n"), fresh.join("\n"));
    // Unchanged lines far from a change are left out; both sides leave out the same ones.
    expect(fresh.join("\n")).toContain(after(lines).join("\n"));
    expect(old.join("\n")).toContain(before(lines).join("\n"));
    const { added, removed } = statOf(lines);
    expect(old.length - removed).toBe(fresh.length - added);
  }
});

test("a unified diff is read without its file headers", () => {
  const patch = "--- a/x\n+++ b/x\n@@ -1,2 +1,2 @@\n one\n-two\n+deux\n";
  expect(isUnified(patch)).toBe(true);
  expect(parseUnified(patch).map((line) => line.sign)).toEqual(["@", " ", "-", "+"]);
  expect(isUnified("git push --force")).toBe(false);
});

test("the known programs' ways to edit all become a diff", () => {
  expect(diffOfCall("Edit", { file_path: "x", old_string: "a", new_string: "b" })?.lines).toHaveLength(2);
  expect(diffOfCall("write", { path: "x", content: "a\nb\n" })?.lines.map((line) => line.sign)).toEqual(["+", "+"]);
  expect(statOf(diffOfCall("apply_patch", { input: "*** Begin Patch\n*** Add File: x\n+a\n*** End Patch" })?.lines ?? [])).toEqual({
    added: 1,
    removed: 0,
  });
  expect(diffOfCall("MultiEdit", { file_path: "x", edits: [{ old_string: "a", new_string: "b" }, 4] })?.lines).toHaveLength(2);
  expect(diffOfCall("edit", { path: "x" })).toBeNull();
});

test("a huge change is shown as out and in, without computing for long", () => {
  const old = Array.from({ length: 3000 }, (_, at) => `old ${at}`).join("\n");
  const fresh = Array.from({ length: 3000 }, (_, at) => `new ${at}`).join("\n");
  expect(statOf(diffText(old, fresh))).toEqual({ added: 3000, removed: 3000 });
});
