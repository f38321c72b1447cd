import { expect, test } from "vitest";
import { text } from "./text";

test("the tab counts what waits", () => {
  expect([text.title(0, 0, null), text.title(2, 1, "Garden"), text.title(0, 1, "Garden")]).toEqual([
    "Palaver",
    "(2) Garden · Palaver",
    "• Garden · Palaver",
  ]);
});

test("an agent says what it answers with, to a person", () => {
  const { runsOn } = text.fresh;
  expect([runsOn("api", "keeper-1"), runsOn("api", null)]).toEqual(["Answers with keeper-1", "Answers with the server's model"]);
  expect([runsOn("claude", "opus"), runsOn("codex", null)]).toEqual(["Claude Code with opus", "Codex"]);
  expect(runsOn("demo", null)).toBe("A demonstration without a model");
});

test("what was recalled is counted by its kind", () => {
  expect(text.knowledge.line(2, 1, 0)).toBe("Recalled 2 notes and 1 conversation");
});
