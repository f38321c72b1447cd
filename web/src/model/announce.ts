/**
 * What the polite live region says: a turn's start, a request that needs a person, a turn's end, and finished sentences
 * at most every two seconds. Never single tokens: a screen reader cannot follow them.
 *
 * Called by the store for the conversation the reader looks at. Holds no words of its own: text.ts has them.
 */

import type { Message, Outcome, RequestKind, State } from "../protocol/events.gen";
import { spokenText } from "./special";

export type Announcement =
  | { kind: "turn_started"; agent: string }
  | { kind: "request_opened"; request: RequestKind; title: string | null; tool: string | null }
  | { kind: "turn_ended"; outcome: Outcome; durationMs: number | null }
  | { kind: "text"; text: string };

/** Speech takes longer than text; more often would pile up. */
const INTERVAL_MS = 2_000;

/** The end of a sentence, a list item or a paragraph. */
const SENTENCE_END = /[.!?…。！？:](?=\s)|\n/g;

export class Announcer {
  private readonly sentences: boolean;
  private readonly intervalMs: number;
  private turn: string | null = null;
  private endedTurn: string | null = null;
  private readonly requests = new Set<string>();
  /** Characters said of each message of the running turn. */
  private readonly said = new Map<string, number>();
  private saidAt = -Infinity;
  private more = false;
  private begun = false;

  constructor(options: { sentences?: boolean; intervalMs?: number } = {}) {
    this.sentences = options.sentences ?? true;
    this.intervalMs = options.intervalMs ?? INTERVAL_MS;
  }

  /** What to say now that this is the state. Call it at each flush and once `nextAt` has passed. */
  say(state: State, now: number): readonly Announcement[] {
    if (!this.begun) {
      this.begin(state);
      return [];
    }
    return [...this.started(state), ...this.text(state, now), ...this.asked(state), ...this.ended(state)];
  }

  /** When there will be more to say although nothing changes, or null. */
  get nextAt(): number | null {
    return this.more ? this.saidAt + this.intervalMs : null;
  }

  /** What was there when the conversation was opened is read, not announced. */
  private begin(state: State): void {
    this.begun = true;
    this.turn = state.turn?.id ?? null;
    this.endedTurn = state.last_turn?.id ?? null;
    for (const request of state.requests) this.requests.add(request.id);
    for (const message of state.messages) this.said.set(message.id, textOf(message).length);
  }

  private started(state: State): Announcement[] {
    const turn = state.turn;
    if (turn === null || turn.id === this.turn) return [];
    this.turn = turn.id;
    return [{ kind: "turn_started", agent: turn.agent }];
  }

  private asked(state: State): Announcement[] {
    const fresh = state.requests.filter((request) => request.status === "open" && !this.requests.has(request.id));
    for (const request of fresh) this.requests.add(request.id);
    return fresh.map(({ kind, title, tool }) => ({ kind: "request_opened", request: kind, title, tool }));
  }

  private ended(state: State): Announcement[] {
    const turn = state.last_turn;
    if (turn === null || turn.id === this.endedTurn) return [];
    this.endedTurn = turn.id;
    if (state.turn === null) this.turn = null;
    return [{ kind: "turn_ended", outcome: turn.outcome, durationMs: turn.duration_ms }];
  }

  private text(state: State, now: number): Announcement[] {
    if (!this.sentences || this.turn === null) return [];
    const early = now < this.saidAt + this.intervalMs;
    this.more = false;
    let text = "";
    for (let at = state.messages.length - 1; at >= 0; at--) {
      const message = state.messages[at] as Message;
      if (message.turn !== this.turn) break;
      if (message.role !== "assistant" || message.status === "superseded") continue;
      const whole = textOf(message);
      const from = this.said.get(message.id) ?? 0;
      const to = message.status === "streaming" ? sentenceEnd(whole, from) : whole.length;
      if (to <= from) continue;
      if (early) {
        this.more = true;
        return [];
      }
      this.said.set(message.id, to);
      text = `${whole.slice(from, to)} ${text}`;
    }
    const spoken = plain(text);
    if (spoken === "") return [];
    this.saidAt = now;
    return [{ kind: "text", text: spoken }];
  }
}

function textOf(message: Message): string {
  return message.blocks.flatMap((block) => (block.type === "text" ? [spokenText(block)] : [])).join("\n");
}

function sentenceEnd(text: string, from: number): number {
  let end = from;
  for (const found of text.slice(from).matchAll(SENTENCE_END)) end = from + found.index + found[0].length;
  return end;
}

/** Markdown's marks are for the eye. */
function plain(text: string): string {
  return text
    .replace(/`{3,}[^\n]*|[*_`~]+|^\s*(?:#{1,6}|>|[-+])\s+/gm, "")
    .replace(/!?\[([^\]]*)\]\([^)]*\)/g, "$1")
    .replace(/\s+/g, " ")
    .trim();
}
