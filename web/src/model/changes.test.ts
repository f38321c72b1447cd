import { expect, test } from "vitest";
import type { FileChange } from "../protocol/events.gen";
import { byFile, total } from "./changes";

function change(path: string, fields: Partial<FileChange> = {}): FileChange {
  return { path, kind: "modified", additions: 2, deletions: 1, diff: "+a", blob: null, ...fields };
}

test("changes of one file are told as one, with each change that has lines", () => {
  const files = byFile([change("a"), change("b", { diff: null }), change("a", { additions: 5 })]);
  expect(files.map(({ path, additions, parts }) => [path, additions, parts.length])).toEqual([
    ["a", 7, 2],
    ["b", 2, 0],
  ]);
  expect(total(files)).toEqual({ added: 9, removed: 3 });
});

test("a file that was made and changed was made, one that went is gone", () => {
  const made = change("a", { kind: "created" });
  expect(byFile([made, change("a")])[0]?.kind).toBe("created");
  expect(byFile([made, change("a", { kind: "deleted" })])[0]?.kind).toBe("deleted");
});
