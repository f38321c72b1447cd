/**
 * Everything the model and the transport want from its surroundings, so that they have no DOM and no clock of their own.
 *
 * `browser.ts` fills it in the page; tests fill it with fakes.
 */

import type { Listing, State } from "../protocol/events.gen";
import type { AgentEntry, Session } from "../protocol/wire";
import type { Api } from "./api";

/** What was last seen on this device, for when the server does not answer. */
export interface OfflineCopy {
  readonly savedAt: number;
  readonly session: Session;
  readonly agents: readonly AgentEntry[];
  readonly rows: readonly Listing[];
  state(conversation: string): Promise<State | null>;
}

export interface KeyValue {
  get(key: string): string | null;
  set(key: string, value: string | null): void;
}

/** The part of WebSocket that is used. */
export interface SocketLike {
  send(text: string): void;
  close(code?: number): void;
  onopen: (() => void) | null;
  onmessage: ((message: { data: unknown }) => void) | null;
  onclose: ((closed: { code: number; reason: string }) => void) | null;
}

export interface Timers {
  /** Milliseconds since 1970. */
  now(): number;
  /** Runs once after a delay; the result cancels it. */
  after(delayMs: number, run: () => void): () => void;
}

export interface Ports extends Timers {
  readonly api: Api;
  /** The page's build version, compared with what the server says. */
  readonly version: string;
  /** The name this browser gives itself, to know its own deeds again in the log. */
  readonly client: string;
  openSocket(): SocketLike;
  /** Runs before the next paint (or soon, in a hidden page); the result cancels it. */
  frame(run: () => void): () => void;
  /** A number in [0, 1), for jitter. */
  random(): number;
  newId(): string;
  isOnline(): boolean;
  /** Calls back when the network returns or the page becomes visible; the result stops that. */
  onWake(run: (why: "online" | "visible") => void): () => void;
  onOffline(run: () => void): () => void;
  /** Calls back when the page is put away or closed, perhaps for good; the result stops that. */
  onHide(run: () => void): () => void;
  /** Midnight before this moment in the reader's time zone. */
  dayOf(ts: number): number;
  /** Null: there is none. */
  offlineCopy(): Promise<OfflineCopy | null>;
  /** Survives a reload of this tab. */
  readonly tab: KeyValue;
  /** Shared by all tabs of this browser. */
  readonly device: KeyValue;
  /** From now on every request proves it; null: none does. */
  keepPageKey(key: string | null): void;
}
