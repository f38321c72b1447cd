/**
 * Surroundings for the transport and the model in tests: time that stands still until told, a server behind a fake
 * socket that keeps logs as the real one does, and an API that answers as the test says.
 */

// Loaded here so that the store finds them at once: tests do not wait for a bundler.
import "../src/model/announce";
import "../src/model/lines";
import "../src/model/markdown";
import "../src/model/turnwork";
import { EMPTY_STATE, fold } from "../src/model/fold";
import type { Accepted, Command, Listing, State } from "../src/protocol/events.gen";
import { readEvent } from "../src/protocol/guards";
import type { ClientLine } from "../src/protocol/wire";
import { type Api, ApiError } from "../src/transport/api";
import type { KeyValue, OfflineCopy, Ports, SocketLike } from "../src/transport/ports";

export class FakeSocket implements SocketLike {
  onopen: (() => void) | null = null;
  onmessage: ((message: { data: unknown }) => void) | null = null;
  onclose: ((closed: { code: number; reason: string }) => void) | null = null;
  readonly sent: ClientLine[] = [];
  closed = false;
  private readonly hear: (line: ClientLine, socket: FakeSocket) => void;

  constructor(hear: (line: ClientLine, socket: FakeSocket) => void) {
    this.hear = hear;
  }

  send(text: string): void {
    if (this.closed) throw new Error("sent on a closed socket");
    const line = JSON.parse(text) as ClientLine;
    this.sent.push(line);
    this.hear(line, this);
  }

  close(): void {
    this.closed = true;
  }

  /** The server says this. A closed socket hears nothing. */
  say(...lines: (string | object)[]): void {
    if (this.closed) return;
    const data = lines.map((line) => (typeof line === "string" ? line : JSON.stringify(line))).join("\n");
    this.onmessage?.({ data });
  }

  drop(code = 1006): void {
    if (this.closed) return;
    this.closed = true;
    this.onclose?.({ code, reason: "" });
  }
}

interface Timer {
  at: number;
  order: number;
  run: () => void;
}

export class World implements Ports {
  /** The page's; the server's is below. */
  version = "1.0.0";
  serverVersion = "1.0.0";
  readonly client = "laptop";
  epoch = "e1";
  online = true;
  /** Whether a new socket is greeted at once. */
  answers = true;
  time = 1_760_000_000_000;
  readonly sockets: FakeSocket[] = [];
  readonly logs = new Map<string, string[]>();
  readonly tab = memory();
  readonly device = memory();
  pageKey: string | null = null;
  keepPageKey = (key: string | null): void => {
    this.pageKey = key;
  };
  readonly api = new FakeApi();
  /** How the server answers a subscription; a test may put its own in. */
  onSubscribe = (socket: FakeSocket, conversation: string, after: number | undefined): void =>
    this.replay(socket, conversation, after);
  private timers: Timer[] = [];
  private order = 0;
  private ids = 0;
  private wakers = new Set<(why: "online" | "visible") => void>();
  private offliners = new Set<() => void>();
  private hiders = new Set<() => void>();

  // -- ports

  now = (): number => this.time;
  random = (): number => 0.5;
  newId = (): string => `id-${++this.ids}`;
  isOnline = (): boolean => this.online;
  /** What was last seen on this device. */
  copy: OfflineCopy | null = null;
  offlineCopy = (): Promise<OfflineCopy | null> => Promise.resolve(this.copy);
  dayOf = (ts: number): number => ts - (ts % 86_400_000);
  frame = (run: () => void): (() => void) => this.after(0, run);

  after = (delayMs: number, run: () => void): (() => void) => {
    const timer = { at: this.time + delayMs, order: this.order++, run };
    this.timers.push(timer);
    return () => {
      this.timers = this.timers.filter((known) => known !== timer);
    };
  };

  onWake = (run: (why: "online" | "visible") => void): (() => void) => {
    this.wakers.add(run);
    return () => this.wakers.delete(run);
  };

  onOffline = (run: () => void): (() => void) => {
    this.offliners.add(run);
    return () => this.offliners.delete(run);
  };

  onHide = (run: () => void): (() => void) => {
    this.hiders.add(run);
    return () => this.hiders.delete(run);
  };

  openSocket = (): SocketLike => {
    const socket = new FakeSocket((line, from) => this.hear(line, from));
    this.sockets.push(socket);
    if (this.answers) this.after(0, () => this.greet(socket));
    return socket;
  };

  // -- time

  /** Lets time pass, running what falls due in its order. */
  advance(ms: number): void {
    const end = this.time + ms;
    for (;;) {
      const due = this.timers.filter((timer) => timer.at <= end).sort((a, b) => a.at - b.at || a.order - b.order)[0];
      if (due === undefined) break;
      this.time = Math.max(this.time, due.at);
      this.timers = this.timers.filter((timer) => timer !== due);
      due.run();
    }
    this.time = end;
  }

  /** Lets promises settle, then what they scheduled for now. */
  async settle(ms = 100): Promise<void> {
    for (let round = 0; round < 5; round++) {
      await new Promise((resolve) => setImmediate(resolve));
      this.advance(ms / 5);
    }
  }

  get pendingTimers(): number {
    return this.timers.length;
  }

  wake(why: "online" | "visible"): void {
    for (const run of this.wakers) run(why);
  }

  goOffline(): void {
    this.online = false;
    for (const run of this.offliners) run();
  }

  hide(): void {
    for (const run of this.hiders) run();
  }

  // -- the server

  get socket(): FakeSocket {
    const socket = this.sockets.at(-1);
    if (socket === undefined) throw new Error("nobody has connected");
    return socket;
  }

  greet(socket: FakeSocket = this.socket): void {
    socket.say({ type: "hello", epoch: this.epoch, version: this.serverVersion, server: "palaver" });
  }

  private hear(line: ClientLine, socket: FakeSocket): void {
    if (line.type === "subscribe") this.onSubscribe(socket, line.conversation, line.after);
    if (line.type === "ping" && this.answers) socket.say({ type: "pong", nonce: line.nonce });
  }

  replay(socket: FakeSocket, conversation: string, after: number | undefined): void {
    const lines = this.logs.get(conversation);
    if (lines === undefined) {
      socket.say({ type: "error", code: "not_found", message: "No such conversation.", conversation });
      return;
    }
    if (after === undefined) socket.say(this.snapshotLine(conversation, "start"));
    else for (const line of lines) if (seqOf(line) > after) socket.say(line);
    socket.say({ type: "caught_up", conversation, seq: lines.length === 0 ? 0 : seqOf(lines.at(-1) as string) });
  }

  /** The last `tail` messages of what the log folds to. */
  snapshotLine(conversation: string, reason: string, tail = 100): object {
    const whole = this.stateOf(conversation);
    const skipped = Math.max(0, whole.messages.length - tail);
    const state = { ...whole, offset: skipped, messages: whole.messages.slice(skipped) };
    return { type: "snapshot", conversation, seq: state.seq, reason, epoch: this.epoch, state };
  }

  stateOf(conversation: string): State {
    const events = (this.logs.get(conversation) ?? []).map((line) => readEvent(JSON.parse(line)));
    return fold(
      { ...EMPTY_STATE, conversation },
      events.filter((event) => event !== null),
    );
  }

  /** Appends events and passes them on, as a commit does. */
  append(conversation: string, ...events: Record<string, unknown>[]): void {
    const lines = this.logs.get(conversation) ?? [];
    const added = events.map((event, at) => {
      const seq = lines.length + at + 1;
      return JSON.stringify({ seq, id: `${conversation}-${seq}`, ts: this.time, conversation, ...event });
    });
    this.logs.set(conversation, [...lines, ...added]);
    if (this.sockets.length > 0 && added.length > 0) this.socket.say(...added);
  }
}

const seqs = new Map<string, number>();

export function seqOf(line: string): number {
  const seq = seqs.get(line) ?? (JSON.parse(line) as { seq: number }).seq;
  seqs.set(line, seq);
  return seq;
}

function memory(): KeyValue & { readonly held: Map<string, string> } {
  const held = new Map<string, string>();
  return {
    held,
    get: (key) => held.get(key) ?? null,
    set: (key, value) => void (value === null ? held.delete(key) : held.set(key, value)),
  };
}

export function refusal(status: number, code: string, retryable = false): ApiError {
  return new ApiError(status, { code, message: `refused: ${code}`, retryable });
}

export function listing(id: string, fields: Partial<Listing> = {}): Listing {
  return {
    id,
    title: id,
    agent: "default",
    project: null,
    status: "idle",
    created_at: 0,
    updated_at: 0,
    seq: 1,
    last_line: "",
    message_count: 0,
    queue_size: 0,
    open_requests: 0,
    turn: null,
    last_turn: null,
    archived: false,
    deleted: false,
    parent: null,
    parent_kind: null,
    root: null,
    open_exchanges: 0,
    cost_usd: 0,
    resolved_at: null,
    grants: 0,
    pos: 1,
    ...fields,
  };
}

/** Answers with nothing in particular; a test replaces what it is about. */
export class FakeApi implements Api {
  readonly commands: { conversation: string; command: Command }[] = [];
  session: Api["session"] = async () => ({ user: "ada", roles: [], server: "palaver", version: "1.0.0" });
  signIn: Api["signIn"] = async () => ({ ...(await this.session()), key: "page-key" });
  signOut: Api["signOut"] = async () => undefined;
  conversations: Api["conversations"] = async () => ({ items: [], next_cursor: null, pos: 0 });
  create: Api["create"] = async (body) => ({ conversation: body.id ?? "new", seq: 1 });
  conversation: Api["conversation"] = async (id) => listing(id);
  update: Api["update"] = async (id) => ({ conversation: id, seq: 1 });
  remove: Api["remove"] = async () => undefined;
  snapshot: Api["snapshot"] = async () => EMPTY_STATE;
  messages: Api["messages"] = async () => ({ items: [] });
  search: Api["search"] = async () => [];
  requests: Api["requests"] = async () => [];
  agents: Api["agents"] = async () => [];
  upload: Api["upload"] = async () => ({ id: "b", url: "/api/blobs/b", mime: "text/plain", size: 1, name: "a.txt" });
  answer: (conversation: string, command: Command) => Promise<Accepted> = async (conversation) => ({ conversation, seq: 1 });

  command: Api["command"] = (conversation, command) => {
    this.commands.push({ conversation, command });
    return this.answer(conversation, command);
  };
}
