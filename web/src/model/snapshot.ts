/** What the view sees, one immutable snapshot of everything; and what it may do, the store's methods. Holds types only. */

import type { Accepted, CreateConversation, Part, SendMessage, State, WireError } from "../protocol/events.gen";
import type { AgentEntry, Credentials, Session, Upload, WaitingRequest } from "../protocol/wire";
import type { CommandBody, OutboxEntry } from "../transport/commands";
import type { Connection } from "../transport/connection";
import type { Announcement } from "./announce";
import type { ConversationList } from "./listing";
import type { MarkdownPart } from "./markdown";
import type { Row } from "./rows";
import type { Search } from "./search";
import type { TurnWork } from "./turnwork";

export interface SessionState {
  readonly phase: "checking" | "signed_in" | "signed_out" | "unreachable";
  readonly session: Session | null;
  /** Why the last sign-in was refused. */
  readonly error: WireError | null;
  /** How somebody who was signed in here came to be so no more: by themselves, or because the server does not know them. */
  readonly ended?: "left" | "expired";
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
  /** What came after this event is new since the reader left; null when nothing is. */
  readonly leftAt: number | null;
  readonly markdown: TextBook;
  /** Null when it could not be loaded: everything is shown as it stands. */
  readonly work: TurnWork | null;
}

/** What the transcript is drawn with: loaded beside the first data. */
export interface Renderer {
  readonly markdown: TextBook;
  readonly work: TurnWork | null;
}

/** Texts of blocks by row key, rendered. A part keeps its identity as long as it does not change. */
export interface TextBook {
  render(key: string, text: string, done: boolean): readonly MarkdownPart[];
}

export interface Loaded<Item> {
  readonly phase: "idle" | "loading" | "ready" | "failed";
  readonly items: readonly Item[];
}

/** A part that did not change keeps its identity. */
export interface Snapshot {
  readonly connection: Connection;
  readonly session: SessionState;
  /** When the copy was made that is shown because the server does not answer; null while it is the server's own word. */
  readonly copiedAt: number | null;
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

/** `delivery`: `boundary` steers the running turn; the default queues behind it. `held`: it waits until it is let go. */
export type SendOptions = Omit<SendMessage, "type" | "content" | "client_request_id">;

export interface Store {
  subscribe: (listener: () => void) => () => void;
  getSnapshot: () => Snapshot;
  /** What the origin of this browser's own events is called. */
  readonly client: string;

  /** Asks who we are and connects. */
  start(): void;
  stop(): void;
  reconnectNow(): void;
  signIn(credentials: Credentials): Promise<boolean>;
  signOut(): Promise<void>;

  /** Follow a conversation. Nested opens are counted; the state stays for a while after the last close. */
  openConversation(id: string): void;
  closeConversation(id: string): void;
  /** Tell which conversation the reader is looking at (null: none): it is never unread. */
  setVisible(id: string | null): void;
  loadOlder(id: string): Promise<void>;
  /** Load older pages until the message that began at `seq` is there. The key of its first row, or null. */
  reveal(id: string, seq: number): Promise<string | null>;

  /** Puts any command into the outbox. The result is its client request id. */
  command(conversation: string, body: CommandBody): string;
  send(conversation: string, content: string | Part[], options?: SendOptions): string;
  /** Settles when the server answered: the answer, or the refusal as ApiError. */
  answered(commandId: string): Promise<Accepted>;
  retry(commandId: string): void;
  discard(commandId: string): void;
  /** With a fresh id inside, so it may be repeated. */
  create(body: CreateConversation): Promise<Accepted>;
  upload(file: Blob, name: string): Promise<Upload>;

  loadMoreConversations(): Promise<void>;
  filterConversations(query: string): void;
  showArchived(shown: boolean): void;
  loadRequests(): Promise<void>;
  loadAgents(): Promise<void>;
  search(query: string, conversation?: string | null): void;

  /** The text of a composer, of a conversation that is open or of a key of the view's own. */
  draft(conversation: string): string;
  setDraft(conversation: string, text: string): void;
  setDisclosed(key: string, open: boolean): void;
  select(conversation: string, key: string | null): void;
  setAnnouncements(sentences: boolean): void;
}
