/**
 * What to read aloud of a conversation: finished sentences of the agent's words, as they come. Code is left out, marks too.
 *
 * Called by the view while reading aloud is on, with each new state. What was there when it began is not read.
 */

import type { State, TextBlock } from "../protocol/events.gen";
import { messagesOfTurn } from "./status";
import { spokenText } from "./special";

/** Ends of sentences, also of those that end in a quotation; and of lines. */
const END = /[.!?…]+["'”’)\]]*(?=\s)|\n/;
/** A sentence without an end is cut: a voice should begin while the answer goes on. */
const LONGEST_CHARS = 400;

/** One text that comes in pieces, cut into what can be said. */
export class Sentences {
  private rest = "";
  private inCode = false;

  add(text: string): string[] {
    this.rest += text;
    const found: string[] = [];
    for (let cut = this.cut(); cut !== null; cut = this.cut()) {
      found.push(...this.sayable(this.rest.slice(0, cut)));
      this.rest = this.rest.slice(cut);
    }
    return found;
  }

  end(): string[] {
    const { rest } = this;
    this.rest = "";
    return this.sayable(rest);
  }

  private cut(): number | null {
    const end = END.exec(this.rest);
    if (end !== null) return end.index + end[0].length;
    if (this.rest.length <= LONGEST_CHARS) return null;
    return this.rest.lastIndexOf(" ", LONGEST_CHARS) + 1 || LONGEST_CHARS;
  }

  private sayable(piece: string): string[] {
    if (piece.trimStart().startsWith("```")) {
      this.inCode = !this.inCode;
      return [];
    }
    const words = piece
      .replace(/!?\[([^\]]*)\]\([^)]*\)/g, "$1")
      .replace(/[*_`#>|~]+/g, "")
      .replace(/^\s*[-+]\s+/, "")
      .trim();
    return this.inCode || !/[\p{L}\p{N}]/u.test(words) ? [] : [words];
  }
}

export class Aloud {
  private readonly texts = new Map<string, { chars: number; sentences: Sentences; ended: boolean }>();
  private turn: string | null = null;
  private ended: string | null = null;
  private begun = false;

  /** What was finished since the last call. `hush`: the turn was stopped, so nothing of it should be said any more. */
  hear(state: State): { say: string[]; hush: boolean } {
    const before = this.turn;
    // A turn that has just ended still has its last words to say; a short one may begin and end unseen.
    const ended = state.last_turn !== null && state.last_turn.id !== this.ended ? state.last_turn : null;
    const hush = this.begun && ended?.outcome === "interrupted";
    const turn = state.turn?.id ?? ended?.id ?? null;
    if (turn !== before) this.texts.clear();
    this.turn = state.turn?.id ?? null;
    this.ended = state.last_turn?.id ?? null;
    const say = turn === null ? [] : messagesOfTurn(state, turn).flatMap(({ id, role, status, blocks }) => {
      if (role !== "assistant" || status === "superseded") return [];
      return blocks.flatMap((block) => (block.type === "text" ? this.take(`${id}:${block.index}`, block) : []));
    });
    const first = !this.begun;
    this.begun = true;
    return { say: first || hush ? [] : say, hush };
  }

  private take(key: string, block: TextBlock): string[] {
    const { status } = block;
    const text = spokenText(block);
    const known = this.texts.get(key) ?? { chars: 0, sentences: new Sentences(), ended: false };
    this.texts.set(key, known);
    if (known.ended) return [];
    const say = known.sentences.add(text.slice(known.chars));
    known.chars = text.length;
    if (status === "streaming") return say;
    known.ended = true;
    return [...say, ...known.sentences.end()];
  }
}
