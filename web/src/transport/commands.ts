/**
 * The outbox: every command gets a client request id here, waits while there is no connection, and is sent again under
 * the same id until the server answers. So a command takes effect once, whatever the network does.
 *
 * Called by the store. Calls the API's `command`. Must never send a command under a new id, nor drop one unanswered.
 */

import type { Accepted, Command, WireError } from "../protocol/events.gen";
import { ApiError, asApiError } from "./api";
import { backoffMs } from "./backoff";
import type { Ports } from "./ports";

/**
 * `waiting`: not sent, there is no connection. `sending`: on its way, perhaps not for the first time. `accepted`: on the
 * server's disk; gone from the outbox once its event is seen. `failed`: refused; it stays until retried or discarded.
 */
export type OutboxStatus = "waiting" | "sending" | "accepted" | "failed";

export interface OutboxEntry {
  readonly id: string;
  readonly conversation: string;
  readonly command: Command;
  readonly status: OutboxStatus;
  readonly createdAt: number;
  readonly attempts: number;
  readonly accepted: Accepted | null;
  readonly error: WireError | null;
}

export interface OutboxListener {
  onOutbox(entries: readonly OutboxEntry[]): void;
  /** The server does not know us any more. */
  onSignedOut(): void;
  /** How far this conversation is folded; null when it is not followed. */
  appliedSeq(conversation: string): number | null;
}

/** A command without its id: the outbox chooses that. */
export type CommandBody = Command extends infer One ? (One extends Command ? Omit<One, "client_request_id"> : never) : never;

/** Stopping and answering must not stand in line behind a message that does not get through. */
const OUT_OF_LINE: ReadonlySet<Command["type"]> = new Set(["interrupt", "resolve_request", "decide_tools", "stop_process"]);

const STORED_UNDER = "palaver.outbox";

interface Waiter {
  resolve(accepted: Accepted): void;
  reject(error: ApiError): void;
}

export class Outbox {
  private readonly ports: Ports;
  private readonly listener: OutboxListener;
  private entries: readonly OutboxEntry[];
  private readonly inFlight = new Set<string>();
  private readonly waiters = new Map<string, Waiter[]>();
  private readonly pauses = new Map<string, () => void>();
  private connected = false;

  constructor(ports: Ports, listener: OutboxListener) {
    this.ports = ports;
    this.listener = listener;
    this.entries = restored(ports.tab.get(STORED_UNDER));
  }

  get current(): readonly OutboxEntry[] {
    return this.entries;
  }

  add(conversation: string, body: CommandBody): string {
    const id = this.ports.newId();
    const command: Command = { ...body, client_request_id: id };
    const createdAt = this.ports.now();
    const fresh = { status: "waiting", attempts: 0, accepted: null, error: null } as const;
    this.keep([...this.entries, { id, conversation, command, createdAt, ...fresh }]);
    this.sendNext();
    return id;
  }

  setConnected(connected: boolean): void {
    this.connected = connected;
    if (connected) {
      for (const cancel of this.pauses.values()) cancel();
      this.pauses.clear();
    }
    this.sendNext();
  }

  /** Settles when the server answered. A command that is no longer here was accepted and seen, or discarded. */
  answered(id: string): Promise<Accepted> {
    const entry = this.find(id);
    if (entry?.accepted) return Promise.resolve(entry.accepted);
    if (entry?.error) return Promise.reject(new ApiError(400, entry.error));
    if (entry === undefined) return Promise.reject(gone());
    return new Promise((resolve, reject) => {
      this.waiters.set(id, [...(this.waiters.get(id) ?? []), { resolve, reject }]);
    });
  }

  /** A refused command leaves no trace on the server, so it is tried again under its own id. */
  retry(id: string): void {
    this.replace(id, { status: "waiting", error: null });
    this.sendNext();
  }

  /** Only what failed or was not sent yet; what is on its way cannot be taken back. */
  discard(id: string): void {
    const entry = this.find(id);
    if (entry === undefined || this.inFlight.has(id)) return;
    this.drop((known) => known.id === id);
    this.settle(id, gone());
  }

  /** Whoever signs in next sends nothing of what is here. */
  clear(): void {
    for (const { id } of this.entries) this.settle(id, gone());
    for (const cancel of this.pauses.values()) cancel();
    this.pauses.clear();
    this.drop(() => true);
  }

  /** Events of this conversation are folded up to `seq`; those of `seen` commands are among them. */
  progress(conversation: string, seq: number, seen: ReadonlySet<string>): void {
    this.drop(
      (entry) =>
        entry.conversation === conversation && entry.accepted !== null && (entry.accepted.seq <= seq || seen.has(entry.id)),
    );
    // Its event arrived before its answer: it is accepted, whatever becomes of the answer.
    for (const id of seen) {
      if (this.find(id) !== undefined && !this.inFlight.has(id)) this.accept(id, { conversation, seq });
    }
  }

  // -- sending

  /** One at a time and in order for each conversation, so that what was typed first arrives first. */
  private sendNext(): void {
    if (!this.connected) return;
    const busy = new Set<string>();
    for (const entry of this.entries) {
      if (entry.status === "accepted" || entry.status === "failed") continue;
      const outOfLine = OUT_OF_LINE.has(entry.command.type);
      const free = outOfLine || !busy.has(entry.conversation);
      if (!outOfLine) busy.add(entry.conversation);
      if (free && !this.inFlight.has(entry.id) && !this.pauses.has(entry.id)) void this.send(entry);
    }
  }

  private async send(entry: OutboxEntry): Promise<void> {
    this.inFlight.add(entry.id);
    this.replace(entry.id, { status: "sending", attempts: entry.attempts + 1 });
    try {
      const accepted = await this.ports.api.command(entry.conversation, entry.command);
      this.inFlight.delete(entry.id);
      this.accept(entry.id, accepted);
    } catch (cause) {
      this.inFlight.delete(entry.id);
      this.refused(entry.id, entry.attempts, asApiError(cause));
    }
    this.sendNext();
  }

  private accept(id: string, accepted: Accepted): void {
    const entry = this.find(id);
    if (entry === undefined) return;
    const applied = this.listener.appliedSeq(entry.conversation);
    if (applied === null || applied >= accepted.seq) this.drop((known) => known.id === id);
    else this.replace(id, { status: "accepted", accepted, error: null });
    this.settle(id, accepted);
  }

  private refused(id: string, attempts: number, error: ApiError): void {
    if (error.signedOut) {
      this.replace(id, { status: "waiting" });
      this.connected = false;
      this.listener.onSignedOut();
    } else if (error.retryable) {
      this.replace(id, { status: this.connected ? "sending" : "waiting" });
      const resume = () => {
        this.pauses.delete(id);
        this.sendNext();
      };
      this.pauses.set(id, this.ports.after(backoffMs(attempts, this.ports.random), resume));
    } else {
      this.replace(id, { status: "failed", error: error.error });
      this.settle(id, error);
    }
  }

  // -- keeping

  private find(id: string): OutboxEntry | undefined {
    return this.entries.find((entry) => entry.id === id);
  }

  private replace(id: string, change: Partial<OutboxEntry>): void {
    this.keep(this.entries.map((entry) => (entry.id === id ? { ...entry, ...change } : entry)));
  }

  private drop(gone: (entry: OutboxEntry) => boolean): void {
    const kept = this.entries.filter((entry) => !gone(entry));
    if (kept.length < this.entries.length) this.keep(kept);
  }

  private keep(entries: readonly OutboxEntry[]): void {
    this.entries = entries;
    const unanswered = entries.filter((entry) => entry.status !== "accepted");
    this.ports.tab.set(STORED_UNDER, unanswered.length > 0 ? JSON.stringify(unanswered) : null);
    this.listener.onOutbox(entries);
  }

  private settle(id: string, answer: Accepted | ApiError): void {
    for (const waiter of this.waiters.get(id) ?? []) {
      if (answer instanceof ApiError) waiter.reject(answer);
      else waiter.resolve(answer);
    }
    this.waiters.delete(id);
  }
}

function gone(): ApiError {
  return new ApiError(0, { code: "gone", message: "This was answered before, or discarded." });
}

/** What a reload left unanswered goes out again under the same ids. */
function restored(stored: string | null): OutboxEntry[] {
  if (stored === null) return [];
  try {
    const entries = JSON.parse(stored) as OutboxEntry[];
    return entries.map((entry) => (entry.status === "failed" ? entry : { ...entry, status: "waiting" }));
  } catch {
    return [];
  }
}
