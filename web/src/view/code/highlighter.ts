/**
 * The page's end of the highlighting worker: started when the first code appears, one answer a piece of code, remembered.
 */

import type { HighlightJob, Highlighted } from "../../model/highlight";

// A screen of code blocks many times over; beyond it the oldest is coloured again when met.
const REMEMBERED = 300;
// Colouring more than this costs more than it helps to read.
const CODE_CHARS_LIMIT = 60_000;

const results = new Map<string, string | null>();
const waiting = new Map<number, { key: string; tell: (html: string | null) => void }>();
let worker: Worker | undefined;
let nextId = 1;

function keyOf(language: string, code: string): string {
  return `${language}\n${code}`;
}

/** What is known already, so that a block scrolled back in shows its colours at once. */
export function knownHighlight(language: string, code: string): string | null | undefined {
  return results.get(keyOf(language, code));
}

/** Calls back with HTML, or null to show it plain. The result takes the wish back. */
export function requestHighlight(language: string, code: string, tell: (html: string | null) => void): () => void {
  if (language === "" || code.length > CODE_CHARS_LIMIT) return () => {};
  worker ??= startWorker();
  const id = nextId;
  nextId += 1;
  waiting.set(id, { key: keyOf(language, code), tell });
  const job: HighlightJob = { id, language, code };
  worker.postMessage(job);
  return () => {
    const wish = waiting.get(id);
    if (wish) wish.tell = () => {};
  };
}

function startWorker(): Worker {
  const started = new Worker(new URL("../../worker/highlight.ts", import.meta.url), { type: "module" });
  started.addEventListener("message", (event: MessageEvent<Highlighted>) => {
    const { id, html } = event.data;
    const wish = waiting.get(id);
    if (!wish) return;
    waiting.delete(id);
    remember(wish.key, html);
    wish.tell(html);
  });
  return started;
}

function remember(key: string, html: string | null): void {
  results.set(key, html);
  if (results.size <= REMEMBERED) return;
  const oldest = results.keys().next().value;
  if (oldest !== undefined) results.delete(oldest);
}
