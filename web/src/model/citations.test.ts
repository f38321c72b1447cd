import { expect, test } from "vitest";
import { sourcesOf } from "./citations";

const PAGE = { type: "web_search_result_location", url: "https://tides.example/spring", title: "Spring tides", cited_text: "Twice a month. " };

test("a source is listed once, with all that was cited from it", () => {
  const again = { ...PAGE, cited_text: "After new and full moon." };
  expect(sourcesOf([PAGE, again, PAGE])).toEqual([
    { title: "Spring tides", url: "https://tides.example/spring", quotes: ["Twice a month.", "After new and full moon."] },
  ]);
});

test("each provider's fields are understood", () => {
  expect(sourcesOf([{ url_citation: { url: "https://a.example" } }])).toEqual([{ title: "https://a.example", url: "https://a.example", quotes: [] }]);
  expect(sourcesOf([{ type: "page_location", document_title: "Almanac", cited_text: "p. 4" }])).toEqual([{ title: "Almanac", url: null, quotes: ["p. 4"] }]);
});

test("what is no address is not linked, and what has no name is left out", () => {
  expect(sourcesOf([{ url: "javascript:alert(1)", title: "Trap" }])[0]?.url).toBeNull();
  expect(sourcesOf([null, 3, "x", {}, { cited_text: "by nobody" }])).toEqual([]);
});
