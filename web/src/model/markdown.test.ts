import MarkdownIt from "markdown-it";
import { describe, expect, test } from "vitest";
import { MarkdownBook, type MarkdownPart, MarkdownStream, renderMarkdown, safeHref } from "./markdown";

/** Small pieces that change what stands before or after them. */
const NASTY = [
  "word ", "two words", "*", "**", "_", "`", "``", "```", "```js\n", "~~~\n", "\n", "\n\n", "\n\n\n", "    ", "  ", "\t", "- ", "- a\n", "* b\n",
  "1. ", "2. x\n", "10) y\n", "> ", "> q\n", ">\n", "# ", "## h\n", "---\n", "===\n", "- - -\n", "***\n", "| a | b |\n", "|---|---|\n", "-|-\n", "|",
  "[a]", "[a]: /u\n", "[a]: /u 'title'\n", "[a]:\n", "[b]: <x y>\n", "'t", "\"more\n", "\"unclosed title\n", "[a](b)", "![i](/x)", "<div>\n", "<b>", "&amp;",
  "https://example.com/x ", "\\", "\\\n", "  \n", "\r\n", "\r", "\0", "é😀", "\u00a0", "x\n", "y\n\n", "   z\n", "     deep\n", "`````\n", "}\n", "+ p\n", "[ ] todo\n",
];

/** Mulberry32: the same documents on every machine. */
function chance(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  };
}

function documentOf(random: () => number): string {
  const count = 1 + Math.floor(random() * 30);
  return Array.from({ length: count }, () => NASTY[Math.floor(random() * NASTY.length)]).join("");
}

function streamed(text: string, random: () => number): readonly MarkdownPart[] {
  const stream = new MarkdownStream();
  for (let at = 0; at < text.length; ) {
    at = Math.min(text.length, at + 1 + Math.floor(random() * 8));
    stream.render(text.slice(0, at), false);
  }
  return stream.render(text, true);
}

function html(text: string): string {
  return renderMarkdown(text)
    .map((part) => (part.kind === "html" ? part.html : `[${part.language}|${part.code}]`))
    .join("");
}

describe("streaming", () => {
  test("random documents of nasty fragments in random pieces end as if rendered at once", () => {
    for (let seed = 1; seed <= 2_000; seed++) {
      const random = chance(seed);
      const text = documentOf(random);
      const parts = streamed(text, random);
      const whole = renderMarkdown(text);
      // Deep comparison of so many documents takes seconds; a string says as much.
      if (JSON.stringify(parts) !== JSON.stringify(whole)) expect(parts, `seed ${seed}: ${JSON.stringify(text)}`).toEqual(whole);
    }
  });

  test("closed blocks are rendered once and stay the objects they were", () => {
    const stream = new MarkdownStream();
    const first = stream.render("# Title\n\nOne *para*\n\nTwo", false);
    const second = stream.render("# Title\n\nOne *para*\n\nTwo and more\n\n```py\nx = 1\n", false);
    expect(second).toHaveLength(4);
    expect(second[0]).toBe(first[0]);
    expect(second[1]).toBe(first[1]);
    const third = stream.render("# Title\n\nOne *para*\n\nTwo and more\n\n```py\nx = 1\ny = 2\n", false);
    expect(third[2]).toBe(second[2]);
    expect(third[3]).toEqual({ kind: "code", key: 3, language: "py", code: "x = 1\ny = 2\n", open: true });
  });

  test("the same text again gives the same parts", () => {
    const stream = new MarkdownStream();
    expect(stream.render("a\n\nb", false)).toBe(stream.render("a\n\nb", false));
    const done = stream.render("a\n\nb", true);
    expect(stream.render("a\n\nb", true)).toBe(done);
  });

  test("a text that was replaced is rendered anew", () => {
    const stream = new MarkdownStream();
    stream.render("one\n\ntwo\n\nthree", false);
    expect(stream.render("other", true)).toEqual(renderMarkdown("other"));
  });

  test("a definition at the end makes a link of its use at the beginning", () => {
    const stream = new MarkdownStream();
    const text = "See [the page][p].\n\nmore\n\n[p]: https://example.com\n";
    for (let at = 1; at < text.length; at++) stream.render(text.slice(0, at), false);
    expect(stream.render(text, true)).toEqual(renderMarkdown(text));
    expect(html(text)).toContain('href="https://example.com"');
  });

  test("only the tail is parsed again: a long text costs what its last block costs", () => {
    const stream = new MarkdownStream();
    const paragraph = "Some words that stand here.\n\n";
    const long = paragraph.repeat(2_000);
    stream.render(long, false);
    const parts = stream.render(`${long}tail`, false);
    const more = stream.render(`${long}tail end`, false);
    expect(more.slice(0, -1).every((part, at) => part === parts[at])).toBe(true);
  });

  test("code is open until its fence ends, or the text does", () => {
    const stream = new MarkdownStream();
    expect(stream.render("```js title\nlet a", false)).toEqual([
      { kind: "code", key: 0, language: "js", code: "let a", open: true },
    ]);
    expect(stream.render("```js title\nlet a\n```", false)).toMatchObject([{ code: "let a\n", open: false }]);
    expect(new MarkdownStream().render("```\nlet a", true)).toMatchObject([{ open: false }]);
    expect(new MarkdownStream().render("```\n```", false)).toMatchObject([{ code: "", open: false }]);
  });
});

test("what is not code is what markdown-it itself makes of it", () => {
  const reference = new MarkdownIt({ html: false });
  for (let seed = 1; seed <= 1_000; seed++) {
    const text = documentOf(chance(seed));
    const whole = reference.render(text);
    if (/<(a|img|pre)\b/.test(whole)) continue;
    expect(html(text).replaceAll(/<a [^>]*>|<\/a>|<span [^>]*>|<\/span>/g, "")).toBe(whole);
  }
});

describe("untrusted text", () => {
  test.each([
    "<script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "[x](javascript:alert(1))",
    "[x](  javascript:alert(1))",
    "[x](JaVaScRiPt:alert(1))",
    "[x](java&#10;script:alert(1))",
    "[x](data:text/html,<script>alert(1)</script>)",
    "[x](vbscript:x)",
    "[x](file:///etc/passwd)",
    "[x](//evil.example)",
    "[x](/api/conversations)",
    "[x](/api/blobs/../session)",
    "<javascript:alert(1)>",
    "[x]: javascript:alert(1)\n\n[x]",
    "![x](https://tracker.example/pixel.png)",
    "![x](javascript:alert(1))",
    "[![x](https://a.example/i.png)](javascript:alert(1))",
    '[x](https://a.example/"onmouseover="alert(1))',
    "javascript:alert(1)",
    "```html\n<script>alert(1)</script>\n```",
    "[a\u202eb](https://a.example)",
  ])("%s gives no element but links to the web", (text) => {
    const rendered = renderMarkdown(text)
      .map((part) => (part.kind === "html" ? part.html : ""))
      .join("");
    expect(rendered).not.toMatch(/<(script|img|iframe|style|svg|object|embed|form)/i);
    for (const [, href] of rendered.matchAll(/href="([^"]*)"/g)) expect(href).toMatch(/^https:\/\/a\.example|^https:\/\/tracker/);
    for (const [tag] of rendered.matchAll(/<[^>]*>/g)) expect(tag.replaceAll(/"[^"]*"/g, "")).not.toMatch(/\bon\w+=|style=/i);
  });

  test("a link says where it goes and opens apart", () => {
    expect(html("[x](https://example.com/a?b=1)")).toBe(
      '<p><a class="md-link" title="https://example.com/a?b=1" href="https://example.com/a?b=1" rel="noopener noreferrer" target="_blank">x</a></p>\n',
    );
  });

  test("an address that is no link keeps its name and is shown on hover", () => {
    expect(html("[x](src/a.py)")).toBe('<p><span class="md-link md-unlinked" title="src/a.py">x</span></p>\n');
  });

  test("an image is a link to click, also inside a link", () => {
    expect(html("![a cat](https://a.example/cat.png)")).toContain('class="md-image"');
    const nested = html("[![a cat](https://a.example/cat.png)](https://b.example)");
    expect(nested.match(/<a /g)).toHaveLength(1);
    expect(nested).toContain('title="https://a.example/cat.png"');
  });

  test("bare addresses with a scheme become links, file names do not", () => {
    expect(html("see https://example.com/x.")).toContain('href="https://example.com/x"');
    expect(html("see main.py and example.com")).not.toContain("<a ");
  });
});

test.each([
  ["https://example.com", true],
  ["HTTP://example.com", true],
  ["mailto:a@b.example", true],
  ["/api/blobs/abc-1", true],
  ["/api/blobs/abc/../x", false],
  ["javascript:alert(1)", false],
  ["data:text/html,x", false],
  ["//example.com", false],
  ["ftp://example.com", false],
  ["", false],
])("safeHref(%s) is %s", (address, safe) => {
  expect(safeHref(address)).toBe(safe ? address : null);
});

test("a book forgets the texts not asked for longest, and nothing else", () => {
  const book = new MarkdownBook();
  const first = book.render("0", "a", true);
  for (let key = 1; key < 400; key++) book.render(String(key), "b", true);
  expect(book.render("0", "a", true)).toBe(first);
  const second = book.render("1", "b", true);
  for (let key = 400; key < 799; key++) book.render(String(key), "c", true);
  expect(book.render("1", "b", true)).toBe(second);
  expect(book.render("0", "a", true)).not.toBe(first);
});

test("the columns of a table say their side by class: the page's policy forbids styles", () => {
  const [table] = renderMarkdown("| a | b |\n|:-:|--:|\n| 1 | 2 |");
  const html = table?.kind === "html" ? table.html : "";
  expect(html).not.toContain("style");
  expect(html.match(/ class="[^"]*"/g)).toEqual([' class="align-center"', ' class="align-right"', ' class="align-center"', ' class="align-right"']);
});

test("what is nested too deep for the parser is shown as it was written", () => {
  const deep = `${"> ".repeat(200)}the bottom`;
  expect(renderMarkdown(`before\n\n${deep}\n\nafter`)).toEqual([
    { kind: "html", key: 0, html: "<p>before</p>\n" },
    { kind: "code", key: 1, language: "", code: `${deep}\n`, open: false },
    { kind: "html", key: 2, html: "<p>after</p>\n" },
  ]);
  expect(renderMarkdown(`${"- ".repeat(200)}the bottom`)[0]).toMatchObject({ kind: "code", code: `${"- ".repeat(200)}the bottom` });
});
