/**
 * What crosses the wire beside events and commands: the lines of the socket, and the bodies of the REST calls.
 *
 * Written by hand, because these are not part of any log. Read by transport and model; holds no behaviour.
 */

import type { Listing, Message, Request, State, WireError } from "./events.gen";

/** Why a snapshot came instead of the events asked for. */
export type SnapshotReason = "start" | "behind" | "future" | "compacted" | "epoch";

export type ClientLine =
  | { type: "subscribe"; conversation: string; after?: number }
  | { type: "unsubscribe"; conversation: string }
  | { type: "follow_list"; after_pos?: number }
  | { type: "ping"; nonce: string };

export interface Hello {
  type: "hello";
  epoch: string;
  version: string;
  server: string;
}

export interface SnapshotLine {
  type: "snapshot";
  conversation: string;
  seq: number;
  reason: SnapshotReason;
  epoch: string;
  state: State;
}

export interface CaughtUp {
  type: "caught_up";
  conversation: string;
  seq: number;
}

export interface Listed {
  type: "listed";
  items: Listing[];
  pos: number;
  /** The position we followed from was not this server's: fetch the list again. */
  reset?: boolean;
}

export interface Heartbeat {
  type: "heartbeat";
  ts: number;
}

export interface Pong {
  type: "pong";
  nonce: string;
}

export interface ErrorLine {
  type: "error";
  code: string;
  message: string;
  conversation?: string;
}

export type ControlLine = Hello | SnapshotLine | CaughtUp | Listed | Heartbeat | Pong | ErrorLine;

/** Who this browser is signed in as. */
export interface Session {
  user: string | null;
  /** `roles`: what it may do, of read, send, decide and admin. */
  role?: string;
  roles: string[];
  server: string;
  version: string;
  /** Whether mode `full` means anything there; a server that does not say leaves it to be tried. */
  full_enabled?: boolean;
}

/** `key`: the session's id, a dot, and what the proofs of every request are made with. */
export interface SignedIn extends Session {
  key: string;
}

export type Credentials = { code: string } | { token: string };

export interface ListPage {
  items: Listing[];
  next_cursor: string | null;
  /** Taken before the rows were read: following the list from it misses nothing. */
  pos: number;
}

export interface MessagePage {
  items: Message[];
}

export interface SearchHit {
  conversation: string;
  title: string;
  message: string;
  seq: number;
  role: string;
  before: string;
  match: string;
  after: string;
}

/** A request that waits for a person, in whichever conversation. */
export interface WaitingRequest {
  conversation: string;
  title: string;
  agent: string;
  /** Of a subagent's: the conversation at the top, which a person looks at. */
  root?: string | null;
  parent_kind?: Listing["parent_kind"];
  /** Whom a subagent works for, the nearest first. A server that does not say leaves it to the list. */
  parents?: readonly string[];
  request: Request;
}

export interface AgentEntry {
  id: string;
  name: string;
  description: string;
  backend: string;
  model: string | null;
  ready: boolean;
  note: string | null;
  /** Why its file cannot be used. */
  problem?: string | null;
}

export interface Upload {
  id: string;
  url: string;
  mime: string;
  size: number;
  name: string;
}

export interface ConversationPatch {
  title?: string;
  agent?: string;
  archived?: boolean;
}

export type { WireError };
