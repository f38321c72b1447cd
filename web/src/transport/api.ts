/**
 * The REST calls of the page, each one function, with Palaver's error shape turned into `ApiError`.
 *
 * Called by the store and the outbox. Signs nothing itself: the `fetch` that it is given does. Must never retry: whoever calls decides.
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
  SignedIn,
  Upload,
  WaitingRequest,
} from "../protocol/wire";

/** The server answers in milliseconds; past this the connection is dead and somebody waits. */
const CALL_TIMEOUT_MS = 30_000;

/** 10 MiB, the largest attachment, over a slow line. */
const UPLOAD_TIMEOUT_MS = 300_000;

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

/** Whatever went wrong, in the one shape an error has. */
export function asApiError(cause: unknown): ApiError {
  if (cause instanceof ApiError) return cause;
  return new ApiError(0, { code: "unreachable", message: "The server did not answer.", retryable: true });
}

export interface Api {
  session(): Promise<Session>;
  signIn(credentials: Credentials): Promise<SignedIn>;
  signOut(): Promise<void>;
  conversations(query: ListQuery): Promise<ListPage>;
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

export interface ListQuery {
  limit?: number;
  cursor?: string | null;
  query?: string;
  /** Those put away instead of the others. */
  archived?: boolean;
}

/** Where an uploaded or spilled payload can be read. */
export function blobUrl(id: string): string {
  return `/api/blobs/${encodeURIComponent(id)}`;
}

/** The browser's, or one that does more. */
export type Fetch = (address: string, init?: RequestInit) => Promise<Response>;

type Query = Record<string, string | number | boolean | null | undefined>;

interface Call {
  query?: object;
  /** Sent as JSON, unless it is a form. */
  body?: unknown;
  signal?: AbortSignal | undefined;
  timeoutMs?: number;
}

export class HttpApi implements Api {
  protected readonly fetch: Fetch;
  protected readonly client: string;

  /** `client`: the name that the events of our commands carry. */
  constructor(fetcher: Fetch, { client }: { client: string }) {
    this.fetch = fetcher;
    this.client = client;
  }

  session(): Promise<Session> {
    return this.call("GET", "/api/session");
  }

  signIn(credentials: Credentials): Promise<SignedIn> {
    return this.call("POST", "/api/session", { body: credentials });
  }

  signOut(): Promise<void> {
    return this.call("DELETE", "/api/session");
  }

  conversations(query: ListQuery): Promise<ListPage> {
    return this.call("GET", "/api/conversations", { query });
  }

  create(body: CreateConversation): Promise<Accepted> {
    return this.call("POST", "/api/conversations", { body });
  }

  conversation(id: string): Promise<Listing> {
    return this.call("GET", of(id));
  }

  update(id: string, patch: ConversationPatch): Promise<Accepted> {
    return this.call("PATCH", of(id), { body: patch });
  }

  remove(id: string): Promise<void> {
    return this.call("DELETE", of(id));
  }

  command(id: string, command: Command): Promise<Accepted> {
    return this.call("POST", `${of(id)}/commands`, { body: command });
  }

  snapshot(id: string, tail?: number): Promise<State> {
    return this.call("GET", `${of(id)}/snapshot`, { query: { tail } });
  }

  messages(id: string, before: number, limit?: number): Promise<MessagePage> {
    return this.call("GET", `${of(id)}/messages`, { query: { before, limit } });
  }

  async search(query: { q: string; conversation?: string; limit?: number }, signal?: AbortSignal): Promise<SearchHit[]> {
    return this.items<SearchHit>("/api/search", { query, signal });
  }

  requests(): Promise<WaitingRequest[]> {
    return this.items("/api/requests");
  }

  agents(): Promise<AgentEntry[]> {
    return this.items("/api/agents");
  }

  upload(file: Blob, name: string): Promise<Upload> {
    const form = new FormData();
    form.append("file", file, name);
    return this.call("POST", "/api/uploads", { body: form, timeoutMs: UPLOAD_TIMEOUT_MS });
  }

  protected async items<Item>(path: string, call?: Call): Promise<Item[]> {
    return (await this.call<{ items: Item[] }>("GET", path, call)).items;
  }

  protected async call<Answer>(method: string, path: string, call: Call = {}): Promise<Answer> {
    const { body, signal, timeoutMs = CALL_TIMEOUT_MS } = call;
    const bounded = AbortSignal.timeout(timeoutMs);
    const request: RequestInit = {
      method,
      headers: { "palaver-client": this.client },
      cache: "no-store",
      signal: signal ? AbortSignal.any([signal, bounded]) : bounded,
    };
    if (body instanceof FormData) request.body = body;
    else if (body !== undefined) {
      request.body = JSON.stringify(body);
      request.headers = { ...request.headers, "content-type": "application/json" };
    }
    // A browser's fetch wants no `this`.
    const { fetch: fetcher } = this;
    try {
      const response = await fetcher(path + queryText(call.query), request);
      const answer = parsed(await response.text());
      if (!response.ok) throw new ApiError(response.status, asWireError(response.status, answer));
      return answer as Answer;
    } catch (cause) {
      throw asApiError(cause);
    }
  }
}

function of(id: string): string {
  return `/api/conversations/${encodeURIComponent(id)}`;
}

function queryText(query: object | undefined): string {
  const given = Object.entries((query ?? {}) as Query).filter(([, value]) => value != null && value !== "");
  if (given.length === 0) return "";
  return `?${new URLSearchParams(given.map(([name, value]) => [name, String(value)]))}`;
}

export function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** A proxy in between may answer without our shape; a gateway's error passes. */
export function asWireError(status: number, answer: unknown): WireError {
  if (typeof answer === "object" && answer !== null && "code" in answer && "message" in answer) return answer as WireError;
  const retryable = status === 408 || status === 425 || status === 429 || status >= 502;
  return { code: "internal", message: `The server answered with status ${status} and no explanation.`, retryable };
}
