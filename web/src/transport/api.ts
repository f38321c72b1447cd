/**
 * The REST calls of the page, each one function, with Palaver's error shape turned into `ApiError`.
 *
 * Called by the store and the outbox. Signs nothing itself: the cookie does. Must never retry: whoever calls decides.
 */

import type { Accepted, Command, CreateConversation, Listing, State, WireError } from "../protocol/events.gen";
import type {
  AgentEntry,
  ConversationPatch,
  Credentials,
  ListPage,
  MessagePage,
  SearchHit,
  Session,
  Upload,
  WaitingRequest,
} from "../protocol/wire";

/** A refusal by the server (`status` > 0) or a call that got no answer (`status` 0, code `unreachable`). */
export class ApiError extends Error {
  readonly status: number;
  readonly error: WireError;

  constructor(status: number, error: WireError) {
    super(error.message);
    this.name = "ApiError";
    this.status = status;
    this.error = error;
  }

  /** Whether the same call may succeed later without anybody changing anything. */
  get retryable(): boolean {
    return this.status === 0 || this.error.retryable === true;
  }

  get signedOut(): boolean {
    return this.status === 401;
  }
}

export interface Api {
  session(): Promise<Session>;
  signIn(credentials: Credentials): Promise<Session>;
  signOut(): Promise<void>;
  conversations(query: { limit?: number; cursor?: string | null; query?: string }): Promise<ListPage>;
  create(body: CreateConversation): Promise<Accepted>;
  conversation(id: string): Promise<Listing>;
  update(id: string, patch: ConversationPatch): Promise<Accepted>;
  remove(id: string): Promise<void>;
  command(id: string, command: Command): Promise<Accepted>;
  snapshot(id: string, tail?: number): Promise<State>;
  messages(id: string, before: number, limit?: number): Promise<MessagePage>;
  search(query: { q: string; conversation?: string; limit?: number }, signal?: AbortSignal): Promise<SearchHit[]>;
  requests(): Promise<WaitingRequest[]>;
  agents(): Promise<AgentEntry[]>;
  upload(file: Blob, name: string): Promise<Upload>;
}

/** Where an uploaded or spilled payload can be read. */
export function blobUrl(id: string): string {
  return `/api/blobs/${encodeURIComponent(id)}`;
}
