import { expect, test } from "vitest";
import { isExploring, kindOf } from "./toolkind";

test("the tools of other programs are known by what they do", () => {
  expect(["Bash", "mcp__files__read_file", "search_file_content", "weather"].map(kindOf)).toEqual(["shell", "read", "grep", "other"]);
});

test("only what looks explores", () => {
  expect(["Grep", "list_directory", "Edit", "weather"].map(isExploring)).toEqual([true, true, false, false]);
});
