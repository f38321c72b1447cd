import { expect, test } from "vitest";
import { MarkdownStream } from "../../model/markdown";
import { growthOf } from "./growth";

const TEXTS = [
  "Most *tides* come twice a day; `high water` is later, and **springs** follow [the moon](https://a.org) & 1 < 2.\n\nNext **par** one.",
  "- one\n- two *and* `x`\n  - deep `er`\n\n> quote *it*\n> again\n\n1. a\n\n2. b **c** d\n",
  "| a | b |\n|--|:-:|\n| `1` | *2* |\n| 3 | 4 |\n\nafter<br>it  \nhard break\n\n---\n# head *ing*\n",
  "_a **b** c_ **d _e_ f** ~~g~~ <script>x</script> ![i](https://a.org/x.png) *open",
];

/** Every HTML a part goes through while its text comes letter by letter. */
function* steps(text: string): Generator<[before: string, after: string]> {
  const stream = new MarkdownStream();
  let before = new Map<number, string>();
  for (let end = 1; end <= text.length; end++) {
    const now = new Map<number, string>();
    for (const part of stream.render(text.slice(0, end), end === text.length)) if (part.kind === "html") now.set(part.key, part.html);
    for (const [key, html] of now) if (before.has(key) && before.get(key) !== html) yield [before.get(key) as string, html];
    before = now;
  }
}

test("what is kept and what is new make the whole, at every letter", () => {
  let [found, all] = [0, 0];
  for (const text of TEXTS) {
    for (const [before, after] of steps(text)) {
      all += 1;
      const growth = growthOf(before, after);
      if (growth === null) continue;
      found += 1;
      const tail = (/(?:<\/\w+>\n?)+$/.exec(before)?.[0].match(/<\/\w+>\n?/g) ?? []).slice(-growth.depth).join("");
      const from = after.length - tail.length - growth.html.length;
      expect(after).toBe(before.slice(0, from) + growth.html + tail);
      expect(before.slice(from, before.length - tail.length)).not.toContain("<");
      expect(before[from - 1]).toBe(">");
    }
  }
  expect(found / all).toBeGreaterThan(0.85);
});

test("elements that cross the end are no growth of it", () => {
  expect(growthOf("<p><em>a</em></p>", "<p><em>ab</em> x <em>y</em></p>")).toBeNull();
  expect(growthOf("<p>a</p>", "<ul><li>a</li></ul>")).toBeNull();
});

test("words after an element stand beside it, and words become an element", () => {
  expect(growthOf("<p>a <em>b</em></p>\n", "<p>a <em>b</em> c</p>\n")).toEqual({ depth: 1, replaces: false, html: " c" });
  expect(growthOf("<p>a `b</p>\n", "<p>a <code>b</code></p>\n")).toEqual({ depth: 1, replaces: true, html: "a <code>b</code>" });
  expect(growthOf("<p>a</p>\n", "<p>a &lt; b</p>\n")).toEqual({ depth: 1, replaces: true, html: "a &lt; b" });
});
