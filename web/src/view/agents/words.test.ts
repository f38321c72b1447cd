import { describe, expect, it } from "vitest";
import { lineOf, namesOf, wordsOf } from "./words";

describe("a command line", () => {
  it("is split as a terminal splits it", () => {
    expect(wordsOf(`  npx -y "@scope/server files" --root='/my files' a\\ b ""`)).toEqual(["npx", "-y", "@scope/server files", "--root=/my files", "a b", ""]);
    expect(wordsOf("")).toEqual([]);
  });

  it("without the end of a quote is none", () => {
    expect(wordsOf("echo 'half")).toBeNull();
  });

  it("says the same words after a round trip", () => {
    for (const words of [["a"], ["my program", "--say=it's"], ["", "$HOME", "back\\slash", 'say "so"']]) {
      expect(wordsOf(lineOf(words))).toEqual(words);
    }
  });
});

it("names are told apart by commas, blanks and lines, each once", () => {
  expect(namesOf(" read, grep\nshell  read,")).toEqual(["read", "grep", "shell"]);
});
