/** Finding text in the messages at hand. Called by the panel that finds in a conversation. */

import type { Block, Message } from "../protocol/events.gen";

export interface LocalHit {
  readonly messageId: string;
  readonly seq: number;
  /** The key of the row it is in. */
  readonly rowKey: string;
  readonly before: string;
  readonly match: string;
  readonly after: string;
}

/** A line's worth on each side of a hit. */
const CONTEXT_CHARS = 60;

const MOST_HITS = 1_000;

/** Hits in the order of the transcript. Case-insensitive unless the query has a capital. */
export function findInMessages(messages: readonly Message[], query: string, limit = MOST_HITS): LocalHit[] {
  if (query === "") return [];
  const pattern = new RegExp(query.replace(/[.*+?^${}()|[\]\\]/g, "\\$&"), /\p{Lu}/u.test(query) ? "gu" : "giu");
  const hits: LocalHit[] = [];
  for (const message of messages) {
    if (message.hidden || message.status === "superseded") continue;
    for (const block of message.blocks) {
      // A message of a person is one row; an agent's has a row for each block.
      const rowKey = message.role === "assistant" ? `${message.id}:${block.index}` : message.id;
      for (const text of textsOf(block)) {
        for (const found of text.matchAll(pattern)) {
          hits.push({ messageId: message.id, seq: message.seq, rowKey, ...around(text, found) });
          if (hits.length >= limit) return hits;
        }
      }
    }
  }
  return hits;
}

/** A text in pieces: every second one is a word of the query. Cut as the server does: whole words, the last may go on. */
export function piecesOf(text: string, query: string): string[] {
  const words = query.match(/[\p{L}\p{N}]+/gu) ?? [];
  if (words.length === 0) return [text];
  const [last, ...others] = words.toReversed();
  const wanted = [`${last}[\\p{L}\\p{N}]*`, ...others.map((word) => `${word}(?![\\p{L}\\p{N}])`)];
  return text.split(new RegExp(`(?<![\\p{L}\\p{N}])(${wanted.join("|")})`, "giu"));
}

function textsOf(block: Block): string[] {
  switch (block.type) {
    case "text":
    case "thinking":
      return [block.text];
    case "tool":
      return [block.input === null ? block.input_text : JSON.stringify(block.input), block.output, block.error?.message ?? ""];
    case "image":
      return [];
    default:
      return block satisfies never;
  }
}

function around(text: string, found: RegExpExecArray): { before: string; match: string; after: string } {
  const [match] = found;
  const end = found.index + match.length;
  return {
    before: text.slice(Math.max(0, found.index - CONTEXT_CHARS), found.index),
    match,
    after: text.slice(end, end + CONTEXT_CHARS),
  };
}
