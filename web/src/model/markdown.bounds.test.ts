/** Markdown that is made to be slow or to hide something: bounded work, counted in steps of the parser, and no word lost. */

import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { countSteps, MarkdownStream, renderMarkdown, type MarkdownPart } from "./markdown";

interface Given {
  size: number;
  harmless: string;
  hostile: { name: string; head: string; unit: string }[];
}

const given = JSON.parse(readFileSync(new URL("../../../tests/golden/texts/hostile_markdown.json", import.meta.url), "utf8")) as Given;
const filled = (head: string, unit: string): string => (head + unit.repeat(given.size / unit.length + 1)).slice(0, given.size);
const hostile = given.hostile.map(({ name, head, unit }) => [name, filled(head, unit)] as const);
const written = (parts: readonly MarkdownPart[]): string => parts.map((part) => (part.kind === "html" ? part.html : part.code)).join("\n");

/** To the work of a harmless text of the same size. */
const RATIO = 12;
const usual = countSteps(filled("", given.harmless)) ?? 0;

test("a harmless text of the same size is rendered as Markdown", () => {
  expect(usual).toBeGreaterThan(1000);
  expect(written(renderMarkdown(filled("", given.harmless)))).toContain("<strong>springs</strong>");
});

test.each(hostile)("bounded work: %s", (_, text) => {
  // Null: given up at the limit, which is as bounded.
  expect(countSteps(text) ?? 0).toBeLessThanOrEqual(RATIO * usual);
});

test.each(["quotes that go on", "brackets", "images", "cells left out"])("given up at the limit and shown as written: %s", (name) => {
  const text = hostile.find(([known]) => known === name)?.[1] ?? "";
  expect(countSteps(text)).toBeNull();
  expect(renderMarkdown(text)).toEqual([{ kind: "code", key: 0, language: "", code: text, open: false }]);
});

test("a text that grows beyond the bounds is shown whole at every moment", () => {
  const stream = new MarkdownStream();
  const text = `Words before.\n\n${"> a\n".repeat(20_000)}`;
  for (let end = 0; end < text.length; end += 20_000) stream.render(text.slice(0, end), false);
  const parts = stream.render(`${text}last words`, true);
  expect(written(parts)).toContain("Words before.");
  expect(written(parts)).toContain("last words");
});
