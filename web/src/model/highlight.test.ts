import { expect, test } from "vitest";
import { highlight } from "./highlight";

test("known languages and their short names are coloured, and what they hold is escaped", () => {
  expect(highlight({ id: 1, code: "let a = '<b>';", language: "ts" })).toEqual({
    id: 1,
    html: '<span class="hljs-keyword">let</span> a = <span class="hljs-string">&#x27;&lt;b&gt;&#x27;</span>;',
  });
});

test("an unknown language, and too much code, stay plain", () => {
  expect(highlight({ id: 2, code: "x", language: "brainfog" })).toEqual({ id: 2, html: null });
  expect(highlight({ id: 3, code: "x".repeat(100_001), language: "js" })).toEqual({ id: 3, html: null });
});
