import { expect, test } from "vitest";
import { keptOffKey, reviewLines, type ReviewFile } from "./settingsreview";

function file(fields: Partial<ReviewFile>): ReviewFile {
  return { path: ".mcp.json", size_bytes: 3, sha256: "ab", text: "{}\n", link: null, ...fields };
}

function shown(...files: ReviewFile[]): string[] {
  return reviewLines(files).map(({ pieces }) => pieces.join(""));
}

test("a file is shown whole beneath its name", () => {
  expect(shown(file({ text: '{\n  "a": 1\n}' }))).toEqual([".mcp.json:", "{", '  "a": 1', "}"]);
  expect(shown(file({ text: "one line" }))).toEqual([".mcp.json:", "one line"]);
});

test("hidden characters and padding are made visible", () => {
  const text = `a\u202eb${" ".repeat(200)}rm -rf ~\n${"\n".repeat(50)}last\n`;
  expect(shown(file({ text }))).toEqual([".mcp.json:", "a⟨202E⟩b⋯ 200 spaces ⋯rm -rf ~", "⋯ 50 blank lines ⋯", "last"]);
});

test("no file is left out, whatever it holds and however it is called", () => {
  const paths = ["command", "url", "input", "content", ".claude/hooks/a.sh", "b\nc"];
  for (const text of ["", "\n \n", null, "--- a\n+++ b\n", "{}", "x"]) {
    for (const path of paths) {
      const lines = shown(file({ path, text }), file({ path: "last", text: "end" }));
      expect(lines[0]).toContain(path.replace("\n", "␊"));
      expect(lines.slice(-2)).toEqual(["last:", "end"]);
    }
  }
});

test("what is no text is named with its size and hash, and a link with where it leads", () => {
  expect(shown(file({ text: null, size_bytes: 2048, sha256: "abc", link: "../x" }))).toEqual([
    ".mcp.json → ../x: no text, or too long to show (2.0 KB, SHA-256 abc)",
  ]);
  expect(shown(file({ text: null, sha256: "" }))).toEqual([".mcp.json: cannot be read"]);
});

test("keeping off is remembered by program and folder", () => {
  expect(keptOffKey("/a", "codex")).not.toBe(keptOffKey("/a", "pi"));
  expect(keptOffKey("/a", "codex")).not.toBe(keptOffKey("/b", "codex"));
});
