import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import type { TextBlock } from "../protocol/events.gen";
import { answerText, parseSpecial, type Special, spokenText } from "./special";

interface Case {
  name: string;
  text: string;
  block: Special | null;
  answers?: string[][];
  answer?: string;
}

const cases: Case[] = JSON.parse(readFileSync(new URL("../../../tests/golden/texts/special-blocks.json", import.meta.url), "utf8"));

test.each(cases)("$name", ({ text, block, answers, answer }) => {
  const special = parseSpecial(text);
  expect(special).toEqual(block);
  if (answer !== undefined && special?.type === "ask_user") expect(answerText(special.questions, answers ?? [])).toBe(answer);
});

test("a text beyond the limit stays text", () => {
  expect(parseSpecial(JSON.stringify({ type: "plan", summary: "x".repeat(300_000) }))).toBeNull();
});

test("what is heard of a structured answer is what it says, once it is finished", () => {
  const block = (text: string, status: TextBlock["status"] = "done"): TextBlock => ({ type: "text", index: 0, text, status, blob: null, citations: [] });
  const question = '{"type": "ask_user", "questions": ["Which tide?", "Which day?"]}';
  expect(spokenText(block(question, "streaming"))).toBe("");
  expect(spokenText(block(question))).toBe("Which tide? Which day?");
  expect(spokenText(block('{"a": 1}'))).toBe('{"a": 1}');
  expect(spokenText(block("Hello", "streaming"))).toBe("Hello");
});

test("the same text is the same block", () => {
  const text = '{"type": "plan", "summary": "S"}';
  expect(parseSpecial(text)).toBe(parseSpecial(text));
});
