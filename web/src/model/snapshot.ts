/** What the view sees: one immutable snapshot of everything. A part that did not change keeps its identity. */

import type { State, WireError } from "../protocol/events.gen";
import type { AgentEntry, Session, WaitingRequest } from "../protocol/wire";
import type { OutboxEntry } from "../transport/commands";
import type { Connection } from "../transport/connection";
import type { Announcement } from "./announce";
import type { ConversationList } from "./listing";
import type { MarkdownBook } from "./markdown";
import type { Row } from "./rows";
import type { Search } from "./search";

export interface SessionState {
  readonly phase: "checking" | "signed_in" | "signed_out" | "unreachable";
  readonly session: Session | null;
  /** Why the last sign-in was refused. */
  readonly error: WireError | null;
}

export interface OpenConversation {
  readonly id: string;
  /** `missing`: deleted, or never there. */
  readonly phase: "loading" | "ready" | "missing" | "failed";
  readonly error: WireError | null;
  /** The fold. Older pages are in `state.messages` too; `state.offset` says how many are still on the server. */
  readonly state: State;
  readonly rows: readonly Row[];
  readonly older: "more" | "loading" | "failed" | "start";
  /** How often older rows were put before the first: set virtua's `shift` on the render where it changes. */
  readonly prependCount: number;
  readonly outbox: readonly OutboxEntry[];
  /** The composer's text: typed here, or left on another device. */
  readonly draft: string;
  readonly selected: string | null;
  /** Texts of blocks by row key. */
  readonly markdown: MarkdownBook;
}

export interface Loaded<Item> {
  readonly phase: "idle" | "loading" | "ready" | "failed";
  readonly items: readonly Item[];
}

export interface Snapshot {
  readonly connection: Connection;
  readonly session: SessionState;
  readonly list: ConversationList;
  readonly open: ReadonlyMap<string, OpenConversation>;
  readonly outbox: readonly OutboxEntry[];
  /** By row key (or any key of the view's own): true open, false closed; absent takes the view's default. */
  readonly disclosure: ReadonlyMap<string, boolean>;
  readonly search: Search;
  readonly requests: Loaded<WaitingRequest>;
  readonly agents: Loaded<AgentEntry>;
  /** The latest thing for the live region; a new object each time there is something to say. */
  readonly announcement: { readonly id: number; readonly items: readonly Announcement[] };
}
