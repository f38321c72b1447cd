/** Marks words in what is drawn, with the browser's highlight registry: the page's elements are not touched. */

import { useEffect } from "react";

const NAME = "found";
// More marks than a screen can hold only cost time.
const MARKS_LIMIT = 500;

export function useMarkedWords(query: string): void {
  useEffect(() => {
    if (query === "" || !("highlights" in CSS)) return;
    const root = document.querySelector(".transcript");
    if (!root) return;
    let frame = 0;
    const mark = (): void => {
      frame = 0;
      CSS.highlights.set(NAME, new Highlight(...rangesOf(root, query)));
    };
    const soon = (): void => {
      if (frame === 0) frame = requestAnimationFrame(mark);
    };
    const observer = new MutationObserver(soon);
    observer.observe(root, { childList: true, subtree: true, characterData: true });
    soon();
    return () => {
      observer.disconnect();
      cancelAnimationFrame(frame);
      CSS.highlights.delete(NAME);
    };
  }, [query]);
}

function rangesOf(root: Element, query: string): Range[] {
  const exact = query !== query.toLowerCase();
  const ranges: Range[] = [];
  const walker = document.createTreeWalker(root, NodeFilter.SHOW_TEXT);
  for (let node = walker.nextNode(); node !== null && ranges.length < MARKS_LIMIT; node = walker.nextNode()) {
    const content = node.textContent ?? "";
    const words = exact ? content : content.toLowerCase();
    for (let at = words.indexOf(query); at !== -1; at = words.indexOf(query, at + query.length)) {
      const range = new Range();
      range.setStart(node, at);
      range.setEnd(node, Math.min(at + query.length, content.length));
      ranges.push(range);
    }
  }
  return ranges;
}
