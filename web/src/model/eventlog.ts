/**
 * A conversation's log as it was written: each line with its number, what is missing between them, and the view at any of them.
 *
 * Fed by the event inspector. Lines are kept as they came; the view at a number is folded from the nearest earlier one that
 * is kept. Pure but for what it remembers; must never change a line.
 */

import type { State } from "../protocol/events.gen";
import { type AnyEvent, readEvent } from "../protocol/guards";
import { EMPTY_STATE, fold } from "./fold";

/** A view is kept this often: a few milliseconds of folding to any place between. */
const KEPT_EVERY = 250;

/** What a page can hold and still be quick. Whoever has more exports it. */
const MOST_BYTES = 64 << 20;

export interface Entry {
  readonly seq: number;
  /** Less than `seq` when this one stands for several. */
  readonly first: number;
  readonly ts: number;
  readonly type: string;
  /** Exactly as it is stored. */
  readonly line: string;
}

/** Numbers whose events were not told one by one: a view came in their place. */
export interface Gap {
  readonly first: number;
  readonly last: number;
}

export type LogRow = { readonly kind: "entry"; readonly entry: Entry } | { readonly kind: "gap"; readonly gap: Gap };

export class EventLog {
  readonly entries: Entry[] = [];
  readonly gaps: Gap[] = [];
  /** How many of each type. */
  readonly types = new Map<string, number>();
  private readonly kept: { seq: number; state: State; at: number }[];
  private head: State = EMPTY_STATE;
  private bytes = 0;
  private readonly mostBytes: number;

  constructor(mostBytes = MOST_BYTES) {
    this.mostBytes = mostBytes;
    this.kept = [{ seq: 0, state: EMPTY_STATE, at: 0 }];
  }

  get seq(): number {
    return this.head.seq;
  }

  get state(): State {
    return this.head;
  }

  /** It holds as much as it may; what follows is not taken. */
  get isFull(): boolean {
    return this.bytes >= this.mostBytes;
  }

  /** Lines in their order; those that are known, or cannot be read, are passed over. */
  take(lines: readonly string[]): void {
    let events: AnyEvent[] = [];
    for (const line of lines) {
      if (this.isFull) break;
      const event = eventOf(line);
      const seq = events.at(-1)?.seq ?? this.head.seq;
      if (event === null || event.seq <= seq) continue;
      this.enter(event, line, seq);
      events.push(event);
      if (this.entries.length % KEPT_EVERY === 0) {
        this.head = fold(this.head, events);
        events = [];
        this.keep();
      }
    }
    this.head = fold(this.head, events);
  }

  /** A view in place of what lies between it and what is held. */
  adopt(state: State): void {
    if (state.seq <= this.head.seq) return;
    this.gaps.push({ first: this.head.seq + 1, last: state.seq });
    this.head = state;
    this.keep();
  }

  /** The view when this event had happened. Inside a gap: the view after it. */
  at(seq: number): State {
    const gap = this.gaps.find(({ first, last }) => first <= seq && seq <= last);
    const wanted = gap?.last ?? seq;
    if (wanted >= this.head.seq) return this.head;
    const from = this.kept.findLast((known) => known.seq <= wanted) ?? this.kept[0];
    if (from === undefined) return this.head;
    const rest: AnyEvent[] = [];
    for (let at = from.at; at < this.entries.length; at++) {
      const entry = this.entries[at] as Entry;
      if (entry.seq > wanted) break;
      const event = eventOf(entry.line);
      if (event !== null) rest.push(event);
    }
    return fold(from.state, rest);
  }

  /** Lines of these types (all without), with gaps where they are. */
  rows(shows: (type: string) => boolean): LogRow[] {
    const rows: LogRow[] = [];
    let gap = 0;
    const passGaps = (seq: number): void => {
      for (let next = this.gaps[gap]; next !== undefined && next.first <= seq; next = this.gaps[++gap]) rows.push({ kind: "gap", gap: next });
    };
    for (const entry of this.entries) {
      passGaps(entry.first);
      if (shows(entry.type)) rows.push({ kind: "entry", entry });
    }
    passGaps(Infinity);
    return rows;
  }

  private enter(event: AnyEvent, line: string, before: number): void {
    const type = event.type === "opaque" ? event.of : event.type;
    const first = event.type === "log.compacted" ? event.first : event.seq;
    // What the server left out without a word is a gap too.
    if (first > before + 1) this.gaps.push({ first: before + 1, last: first - 1 });
    this.entries.push({ seq: event.seq, first, ts: event.ts, type, line });
    this.types.set(type, (this.types.get(type) ?? 0) + 1);
    this.bytes += line.length;
  }

  private keep(): void {
    this.kept.push({ seq: this.head.seq, state: this.head, at: this.entries.length });
  }
}

function eventOf(line: string): AnyEvent | null {
  try {
    return readEvent(JSON.parse(line));
  } catch {
    return null;
  }
}

/** Fields that say most about an event in a few words, the telling ones first. */
const TELLING = ["text", "content", "title", "name", "command", "tool", "outcome", "status", "verdict", "reason", "draft", "task", "model", "to_model", "agent", "path"];

const GIST_CHARS = 160;

/** Content is a list of parts; what they say is what counts. */
function inWords(value: unknown): string {
  if (typeof value === "string") return value;
  if (!Array.isArray(value)) return JSON.stringify(value);
  return value.map((part) => (typeof part?.text === "string" ? part.text : JSON.stringify(part))).join(" ");
}

/** An event in a few words, for a line of a list. */
export function gistOf(line: string): string {
  let raw: unknown;
  try {
    raw = JSON.parse(line);
  } catch {
    return line.slice(0, GIST_CHARS);
  }
  const fields = raw as Record<string, unknown>;
  const found = TELLING.map((name) => fields[name]).filter((value) => value != null && value !== "");
  const words = found.slice(0, 2).map(inWords);
  return words.join(" · ").replace(/\s+/g, " ").slice(0, GIST_CHARS);
}
