/**
 * The one WebSocket of this tab: any number of conversations and the list, resumed where they were after any loss.
 *
 * Called by the store; calls it back through `FeedListener` with events in order, each once, without a hole. The cursor
 * advances with every event passed on; a hole makes it ask again from the cursor. Must never pass on an event twice, nor
 * a snapshot that is older than what was passed on, unless the server says that its log is another one.
 */

import type { Listing, State, WireError } from "../protocol/events.gen";
import { type AnyEvent, parseFrame } from "../protocol/guards";
import type { ClientLine, ControlLine, Listed, SnapshotLine } from "../protocol/wire";
import { backoffMs } from "./backoff";
import type { Connection } from "./connection";
import type { Ports, SocketLike } from "./ports";

/** The server beats every 15 s; a beat that is 5 s late will not come. */
const SILENCE_MS = 20_000;

/** After a wake-up a live server answers a ping at once; a dead one should not cost 20 s. */
const PING_MS = 3_000;

/** A connection that dies younger than this counts as a failed try: else a server that falls over is hammered. */
const STABLE_MS = 5_000;

const CLOSED_BY_US = 1000;
const UNAUTHORIZED = 4401;

export interface FeedListener {
  onConnection(connection: Connection): void;
  /** The server said hello: requests will be answered. */
  onReady(): void;
  /** New events of one conversation, in order, without a hole. */
  onEvents(conversation: string, events: AnyEvent[]): void;
  /** Takes the place of everything held of this conversation. */
  onSnapshot(conversation: string, state: State): void;
  onCaughtUp(conversation: string): void;
  onListed(items: Listing[]): void;
  /** The list is another one: load it again, then follow it from its position. */
  onListReset(): void;
  /** The server will not feed this conversation. */
  onRefused(conversation: string, error: WireError): void;
  /** A connection ended before the server said hello: perhaps we are signed out. */
  onUnanswered(): void;
}

interface Cursor {
  /** Seq of the last event passed on; null before the first snapshot. */
  applied: number | null;
  /** Asked again because of a hole; nothing came of it yet. */
  refilling: boolean;
  caughtUp: boolean;
}

export class Feed {
  private readonly ports: Ports;
  private readonly listener: FeedListener;
  private readonly cursors = new Map<string, Cursor>();
  private connection: Connection = { kind: "connecting" };
  private socket: SocketLike | null = null;
  private ready = false;
  private connectedBefore = false;
  private attempt = 0;
  private openedAt = 0;
  private heardAt = 0;
  /** When silence counts as loss, and when somebody looks whether it does. */
  private silentAt = 0;
  private watchdogAt = Infinity;
  private receivedCount = 0;
  private epoch: string | null = null;
  private listPos: number | null = null;
  private signedOut = false;
  private newerVersion: string | null = null;
  private cancelWatchdog: () => void = () => {};
  private cancelRetry: (() => void) | null = null;
  private cleanUp: (() => void)[] = [];

  constructor(ports: Ports, listener: FeedListener) {
    this.ports = ports;
    this.listener = listener;
  }

  /** Again after a sign-in: it begins anew. While it works it goes on as it was. */
  start(): void {
    if (this.cleanUp.length > 0) {
      if (this.signedOut) this.reconnectNow();
      return;
    }
    this.cleanUp = [
      this.ports.onWake(() => this.wake()),
      this.ports.onOffline(() => {
        if (this.cancelRetry !== null) this.report(this.lostState());
      }),
    ];
    this.signedOut = false;
    this.attempt = 0;
    this.connect();
  }

  stop(): void {
    for (const undo of this.cleanUp) undo();
    this.cleanUp = [];
    this.stopWaiting();
    this.drop();
  }

  /** Tries at once, whatever the wait; after a sign-in too. */
  reconnectNow(): void {
    if (this.cleanUp.length === 0) return;
    this.signedOut = false;
    this.attempt = 0;
    if (this.ready) this.ping();
    else this.connect();
  }

  /** The API said 401: nothing will work until somebody signs in. */
  signOut(): void {
    this.signedOut = true;
    this.stopWaiting();
    this.drop();
    this.report({ kind: "signed_out" });
  }

  get isReady(): boolean {
    return this.ready;
  }

  /** `after`: seq of what is held already; null asks for a snapshot. */
  follow(conversation: string, after: number | null): void {
    if (this.cursors.has(conversation)) return;
    this.cursors.set(conversation, { applied: after, refilling: false, caughtUp: false });
    if (this.ready) this.ask(conversation);
  }

  /** `pos`: the position of what is held of the list. */
  followList(pos: number): void {
    this.listPos = pos;
    if (this.ready) this.send({ type: "follow_list", after_pos: pos });
  }

  unfollow(conversation: string): void {
    if (this.cursors.delete(conversation) && this.ready) this.send({ type: "unsubscribe", conversation });
    this.checkCaughtUp();
  }

  // -- the connection

  private connect(): void {
    this.stopWaiting();
    this.drop();
    if (!this.connectedBefore) this.report({ kind: "connecting" });
    const socket = this.ports.openSocket();
    this.socket = socket;
    this.openedAt = this.ports.now();
    socket.onmessage = ({ data }) => {
      if (this.socket === socket && typeof data === "string") this.receive(data);
    };
    socket.onclose = ({ code }) => {
      if (this.socket === socket) this.lost(code);
    };
    this.watch(SILENCE_MS);
  }

  private lost(code: number): void {
    const answered = this.ready;
    const stable = answered && this.ports.now() - this.openedAt >= STABLE_MS;
    this.drop();
    if (code === UNAUTHORIZED) {
      this.signOut();
      return;
    }
    const wait = backoffMs(stable ? 0 : this.attempt, this.ports.random);
    this.attempt = stable ? 1 : this.attempt + 1;
    const retryAt = this.ports.now() + wait;
    this.cancelRetry = this.ports.after(wait, () => this.connect());
    this.report(this.lostState(retryAt));
    if (!answered) this.listener.onUnanswered();
  }

  /** Tries go on even when the browser says offline: it knows nothing of a server on this machine. */
  private lostState(retryAt?: number): Connection {
    if (!this.ports.isOnline()) return { kind: "offline", lastSeen: this.heardAt };
    const known = this.connection.kind === "reconnecting" ? this.connection.retryAt : this.ports.now();
    return { kind: "reconnecting", attempt: this.attempt, retryAt: retryAt ?? known, lastSeen: this.heardAt };
  }

  private wake(): void {
    if (this.signedOut) return;
    if (this.ready) this.ping();
    else if (this.cancelRetry !== null) {
      this.attempt = 0;
      this.connect();
    }
  }

  private ping(): void {
    this.watch(PING_MS);
    this.send({ type: "ping", nonce: this.ports.newId() });
  }

  /** Gives the server that long from now. Lines come by the hundred, so a timer that runs is left to look again. */
  private watch(silenceMs: number): void {
    this.silentAt = this.ports.now() + silenceMs;
    if (this.watchdogAt <= this.silentAt) return;
    this.stopWatching();
    this.watchdogAt = this.silentAt;
    this.cancelWatchdog = this.ports.after(silenceMs, () => {
      this.watchdogAt = Infinity;
      const leftMs = this.silentAt - this.ports.now();
      if (leftMs > 0) this.watch(leftMs);
      else this.lost(CLOSED_BY_US);
    });
  }

  private stopWatching(): void {
    this.cancelWatchdog();
    this.watchdogAt = Infinity;
  }

  private stopWaiting(): void {
    this.cancelRetry?.();
    this.cancelRetry = null;
  }

  private drop(): void {
    this.stopWatching();
    this.ready = false;
    const socket = this.socket;
    this.socket = null;
    if (socket === null) return;
    socket.onmessage = null;
    socket.onclose = null;
    socket.close(CLOSED_BY_US);
  }

  private report(connection: Connection): void {
    this.connection = connection;
    this.listener.onConnection(connection);
  }

  private send(line: ClientLine): void {
    this.socket?.send(JSON.stringify(line));
  }

  // -- what the server says

  private receive(frame: string): void {
    this.heardAt = this.ports.now();
    this.watch(SILENCE_MS);
    let batch: AnyEvent[] = [];
    const passOn = () => {
      const first = batch[0];
      if (first !== undefined) this.listener.onEvents(first.conversation, batch);
      batch = [];
    };
    for (const line of parseFrame(frame)) {
      if (line.kind === "control") {
        passOn();
        this.control(line.line);
      } else if (this.admit(line.event)) {
        if (batch[0] !== undefined && batch[0].conversation !== line.event.conversation) passOn();
        batch.push(line.event);
      }
    }
    passOn();
    if (this.connection.kind === "catching_up") this.report({ kind: "catching_up", receivedCount: this.receivedCount });
  }

  /** Whether an event is the next one. A hole is asked for again; what is known is ignored. */
  private admit(event: AnyEvent): boolean {
    const cursor = this.cursors.get(event.conversation);
    if (cursor === undefined || cursor.applied === null || event.seq <= cursor.applied) return false;
    const from = event.type === "log.compacted" ? event.first : event.seq;
    if (from > cursor.applied + 1) {
      if (!cursor.refilling) {
        cursor.refilling = true;
        this.ask(event.conversation);
      }
      return false;
    }
    cursor.applied = event.seq;
    cursor.refilling = false;
    this.receivedCount += 1;
    return true;
  }

  private control(line: ControlLine): void {
    switch (line.type) {
      case "hello":
        this.welcome(line.epoch, line.version);
        break;
      case "snapshot":
        this.adopt(line);
        break;
      case "caught_up":
        this.reachedHead(line.conversation, line.seq);
        break;
      case "listed":
        this.takeList(line);
        break;
      case "error":
        if (line.conversation !== undefined) {
          this.cursors.delete(line.conversation);
          this.listener.onRefused(line.conversation, { code: line.code, message: line.message });
          this.checkCaughtUp();
        }
        break;
      case "heartbeat":
      case "pong":
        break;
      default:
        line satisfies never;
    }
  }

  private welcome(epoch: string, version: string): void {
    if (this.epoch !== null && this.epoch !== epoch) {
      // Another log under the same ids: what was passed on counts for nothing.
      for (const cursor of this.cursors.values()) cursor.applied = null;
      this.loseList();
    }
    this.epoch = epoch;
    this.newerVersion = version === this.ports.version ? null : version;
    this.ready = true;
    this.receivedCount = 0;
    if (this.listPos !== null) this.followList(this.listPos);
    for (const [conversation, cursor] of this.cursors) {
      cursor.refilling = false;
      cursor.caughtUp = false;
      this.ask(conversation);
    }
    this.listener.onReady();
    if (this.connectedBefore) this.report({ kind: "catching_up", receivedCount: 0 });
    else this.report(this.openState(null));
    this.connectedBefore = true;
    this.checkCaughtUp();
  }

  private takeList(line: Listed): void {
    if (line.reset === true) {
      this.loseList();
      return;
    }
    this.listPos = Math.max(this.listPos ?? 0, line.pos);
    this.listener.onListed(line.items);
  }

  private loseList(): void {
    this.listPos = null;
    this.listener.onListReset();
  }

  private ask(conversation: string): void {
    const after = this.cursors.get(conversation)?.applied ?? null;
    this.send(after === null ? { type: "subscribe", conversation } : { type: "subscribe", conversation, after });
  }

  private adopt(line: SnapshotLine): void {
    const cursor = this.cursors.get(line.conversation);
    if (cursor === undefined) return;
    const otherLog = line.reason === "future" || line.reason === "epoch";
    cursor.refilling = false;
    if (cursor.applied !== null && line.seq <= cursor.applied && !otherLog) return;
    this.receivedCount += Math.max(0, line.seq - (cursor.applied ?? line.seq));
    cursor.applied = line.seq;
    this.listener.onSnapshot(line.conversation, line.state);
  }

  private reachedHead(conversation: string, seq: number): void {
    const cursor = this.cursors.get(conversation);
    if (cursor === undefined) return;
    if (cursor.applied === null || cursor.applied < seq) {
      // Replay ended below its own head: a snapshot is the way out of whatever went wrong.
      cursor.refilling = true;
      this.send({ type: "subscribe", conversation });
      return;
    }
    cursor.caughtUp = true;
    this.listener.onCaughtUp(conversation);
    this.checkCaughtUp();
  }

  private checkCaughtUp(): void {
    if (this.connection.kind !== "catching_up") return;
    for (const cursor of this.cursors.values()) if (!cursor.caughtUp) return;
    this.report(this.openState(this.receivedCount > 0 ? this.receivedCount : null));
  }

  private openState(caughtUpCount: number | null): Connection {
    if (this.newerVersion !== null) {
      return { kind: "version_mismatch", page: this.ports.version, server: this.newerVersion };
    }
    return { kind: "open", since: this.ports.now(), caughtUpCount };
  }
}
