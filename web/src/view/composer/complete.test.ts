import { describe, expect, it } from "vitest";
import type { TreeEntry } from "../../protocol/agents";
import { askedAt, commandsLike, filesLike, filesOf, folderIn, withFile } from "./complete";

const file = (path: string): TreeEntry => ({ name: path, path, kind: "file" });
const folder = (path: string, ...entries: TreeEntry[]): TreeEntry => ({ name: path, path, kind: "folder", entries });

const FILES = filesOf([
  folder(".github", file(".github/build.yml")),
  folder("src", folder("src/tide", file("src/tide/moon.py"), file("src/tide/table.py")), file("src/app.py")),
  folder("tests", file("tests/test_table.py")),
  file("my notes.md"),
  file("README.md"),
  { name: "out", path: "out", kind: "link", leads: "outside" },
]);
const like = (query: string): string[] => filesLike(query, FILES).map(({ path }) => path);

describe("what is asked for", () => {
  it("is a file after an @ that begins a word, up to the caret", () => {
    expect(askedAt("@", 1)).toEqual({ kind: "file", from: 0, query: "" });
    expect(askedAt("look at @src/ap and more", 15)).toEqual({ kind: "file", from: 8, query: "src/ap" });
    expect(askedAt('in @"my no', 10)).toEqual({ kind: "file", from: 3, query: "my no" });
    expect(askedAt("ada@example", 11)).toBeNull();
    expect(askedAt("@app then", 9)).toBeNull();
  });

  it("is a command only where a slash begins a message that is nothing else", () => {
    expect(askedAt("/st", 3)).toEqual({ kind: "command", from: 0, query: "st" });
    expect(askedAt("/answer again", 13)).toEqual({ kind: "command", from: 0, query: "answer again" });
    expect(askedAt("/st", 1)).toBeNull();
    expect(askedAt("/usr/lib", 8)).toBeNull();
    expect(askedAt("and/or", 6)).toBeNull();
    expect(askedAt("/st\nmore", 8)).toBeNull();
  });
});

describe("files", () => {
  it("are those of the tree, folders with their slash, without what leads out of it", () => {
    expect(FILES.map(({ path }) => path)).toEqual([
      ".github/", "src/", "tests/", "my notes.md", "README.md",
      ".github/build.yml", "src/tide/", "src/app.py", "tests/test_table.py",
      "src/tide/moon.py", "src/tide/table.py",
    ]);
  });

  it("come the likeliest first: by name, by part, by signs in order", () => {
    expect(like("table")).toEqual(["src/tide/table.py", "tests/test_table.py"]);
    expect(like("src/t")[0]).toBe("src/tide/");
    expect(like("smoon")).toEqual(["src/tide/moon.py"]);
    expect(like("READ")).toEqual(["README.md"]);
    expect(like("nowhere")).toEqual([]);
  });

  it("hides what is hidden until the dot is written", () => {
    expect(like("")).not.toContain(".github/");
    expect(like("build")).toEqual([]);
    expect(like(".g")).toEqual([".github/", ".github/build.yml"]);
  });

  it("offers nothing once a name is written out, and what is inside once a folder is", () => {
    expect(like("src/app.py")).toEqual([]);
    expect(like("src/")).toEqual(["src/tide/", "src/app.py", "src/tide/moon.py", "src/tide/table.py"]);
    expect([folderIn("src/ap", FILES), folderIn("ap", FILES), folderIn("lib/ap", FILES)]).toEqual(["src", null, null]);
  });

  it("takes the place of what was written, quoted where it has blanks, and goes on after a folder", () => {
    const asked = { kind: "file", from: 3, query: "x" } as const;
    expect(withFile(asked, 5, { path: "src/app.py", folder: false })).toEqual({ from: 3, to: 5, text: "@src/app.py ", start: 15, end: 15 });
    expect(withFile(asked, 5, { path: "my notes.md", folder: false }).text).toBe('@"my notes.md" ');
    expect(withFile(asked, 5, { path: "src/", folder: true }).text).toBe("@src/");
    expect(withFile(asked, 5, { path: "old notes/", folder: true }).text).toBe('@"old notes/');
  });
});

it("commands fit when each word written begins one of theirs", () => {
  const commands = [{ name: "Go to the start" }, { name: "Stop the agent" }, { name: "Theme: dark" }, { name: "Answer again" }];
  const names = (query: string): string[] => commandsLike(query, commands).map(({ name }) => name);
  expect(names("st")).toEqual(["Stop the agent", "Go to the start"]);
  expect(names("dark")).toEqual(["Theme: dark"]);
  expect(names("again ans")).toEqual(["Answer again"]);
  expect(names("op")).toEqual([]);
  expect(names("")).toHaveLength(4);
});
