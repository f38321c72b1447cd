/**
 * Everything the page shows, in one place, for any framework: `subscribe` and `getSnapshot` fit useSyncExternalStore.
 *
 * Called by the view, fed by the transport. A snapshot is immutable; a part of it that did not change keeps its identity,
 * so `useSyncExternalStore(store.subscribe, () => pick(store.getSnapshot()))` re-renders only when the part changes.
 * Changes that come from the network are gathered and shown at most 30 times a second; changes by the person at once.
 */

import type { Accepted, Command, CreateConversation, Listing, Part, State, WireError } from "../protocol/events.gen";
import type { AnyEvent } from "../protocol/guards";
import type { Credentials, Upload } from "../protocol/wire";
import { asApiError } from "../transport/api";
import { backoffMs } from "../transport/backoff";
import { type CommandBody, Outbox, type OutboxEntry, type OutboxListener } from "../transport/commands";
import type { Connection } from "../transport/connection";
import { Feed, type FeedListener } from "../transport/feed";
import type { OfflineCopy, Ports } from "../transport/ports";
import type { Announcer } from "./announce";
import type { Conversation } from "./conversation";
import { Door } from "./door";
import { Drafts } from "./drafts";
import { History } from "./history";
import { EMPTY_LIST } from "./listing";
import { Left } from "./left";
import { ListBook } from "./listbook";
import { Lookups } from "./lookups";
import { Alarms, Pace } from "./pace";
import { PlainBook } from "./plain";
import { NO_SEARCH } from "./search";
import { Shelf } from "./shelf";
import type { OpenConversation, SendOptions, Snapshot, Store } from "./snapshot";
import { compareWith } from "./stat";
import { Seen } from "./unread";

export type { CommandBody } from "../transport/commands";
export type { OpenConversation, SendOptions, SessionState, Snapshot, Store } from "./snapshot";

/** Somebody who goes back at once finds the conversation live; somebody who left does not keep it streaming. */
const LINGER_MS = 5_000;

/** Each saved draft is an event on disk, so not every pause. */
const DRAFT_MS = 1_500;

/** A pause in what is being read. */
const SEEN_MS = 1_000;

/** A conversation the server refused for a reason that may pass. */
const REFUSED_MS = 3_000;

const CREATE_TRIES = 4;

const NOTHING_ASKED: Snapshot["requests"] = { phase: "idle", items: [] };

export function openStore(ports: Ports): Store {
  return new PageStore(ports);
}

class PageStore implements Store, FeedListener, OutboxListener {
  readonly client: string;
  private readonly ports: Ports;
  private readonly feed: Feed;
  private readonly outbox: Outbox;
  private readonly drafts: Drafts;
  private readonly list: ListBook;
  private readonly left: Left;
  /** What was held when the page was put away. */
  private awaySeq: number | null = null;
  private readonly alarms: Alarms;
  private readonly pace: Pace;
  private readonly lookups: Lookups;
  private readonly history: History;
  private readonly door: Door;
  private readonly shelf: Shelf;
  private readonly listeners = new Set<() => void>();
  private selected: ReadonlyMap<string, string | null> = new Map();
  private visible: string | null = null;
  /** Null until it is loaded, which the first picture does not wait for. */
  private announcer: Announcer | null = null;
  private newAnnouncer: (() => Announcer) | null = null;
  private saysSentences = true;
  private dirtyList = false;
  private readonly dirty = new Set<Conversation>();
  private stopListening: (() => void)[] = [];
  private snapshot: Snapshot;

  constructor(ports: Ports) {
    this.ports = ports;
    this.client = ports.client;
    this.feed = new Feed(ports, this);
    this.outbox = new Outbox(ports, this);
    this.drafts = new Drafts(ports.tab);
    this.list = new ListBook(new Seen(ports.device));
    this.left = new Left(ports.tab);
    this.alarms = new Alarms(ports);
    this.pace = new Pace(ports, () => this.flush());
    this.lookups = new Lookups(ports, this.list, this.alarms, this);
    this.history = new History(ports, this);
    this.door = new Door(ports, this.feed, this.alarms, this);
    this.shelf = new Shelf(ports.dayOf);
    void this.loadRenderer();
    void this.loadAnnouncer();
    this.snapshot = {
      connection: { kind: "connecting" },
      session: { phase: "checking", session: null, error: null },
      copiedAt: null,
      list: EMPTY_LIST,
      open: new Map(),
      outbox: this.outbox.current,
      disclosure: new Map(),
      search: NO_SEARCH,
      requests: NOTHING_ASKED,
      agents: { phase: "idle", items: [] },
      announcement: { id: 0, items: [] },
    };
  }

  subscribe = (listener: () => void): (() => void) => {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  };

  getSnapshot = (): Snapshot => this.snapshot;

  // -- showing

  publish(change: Partial<Snapshot>): void {
    this.snapshot = { ...this.snapshot, ...change };
    for (const listener of this.listeners) listener();
  }

  flush(): void {
    this.pace.begin();
    for (const conversation of this.dirty) this.fold(conversation);
    this.dirty.clear();
    const open = this.openViews();
    const list = this.dirtyList ? this.list.view(this.ports.dayOf(this.ports.now())) : this.snapshot.list;
    this.dirtyList = false;
    this.publish({ open, list, outbox: this.outbox.current, ...this.announced() });
  }

  private fold(conversation: Conversation): void {
    const seen = conversation.flush();
    const { seq, draft } = conversation.current;
    this.outbox.progress(conversation.id, seq, seen);
    this.drafts.synced(conversation.id, draft);
    // Not at once: it is written to the device's storage, and what is on the screen is not unread anyway. Whoever leaves
    // earlier, or puts the page away, marks it by that.
    if (conversation.id === this.visible) this.alarms.set("seen", SEEN_MS, () => this.markSeen());
  }

  private markSeen(): void {
    this.list.show(this.visible, this.visibleSeq() ?? 0);
  }

  private visibleSeq(): number | null {
    return this.shelf.get(this.visible)?.heldSeq ?? null;
  }

  /** What came while nobody looked, or is still to be caught up with, is new. */
  private lookAgain(): void {
    const [away, now] = [this.awaySeq, this.visibleSeq()];
    this.awaySeq = null;
    if (this.visible === null || away === null || now === null || (now === away && this.feed.isReady)) return;
    this.left.back(this.visible, away);
    this.pace.soon();
  }

  private openViews(): ReadonlyMap<string, OpenConversation> {
    return this.shelf.views(this.snapshot.open, (conversation) => this.viewOf(conversation));
  }

  private viewOf(conversation: Conversation): OpenConversation {
    const { id } = conversation;
    const mine = this.outbox.current.filter((entry) => entry.conversation === id);
    const known = this.snapshot.open.get(id)?.outbox ?? [];
    const same = known.length === mine.length && known.every((entry, at) => entry === mine[at]);
    const beside = { outbox: same ? known : mine, draft: this.draft(id), selected: this.selected.get(id) ?? null };
    const view = conversation.view({ ...beside, leftAt: this.left.seqIn(id) });
    if (view.phase !== "ready") return view;
    this.left.settle(id, view.rows);
    return conversation.view({ ...beside, leftAt: this.left.seqIn(id) });
  }

  private announced(): Partial<Snapshot> {
    const conversation = this.shelf.get(this.visible);
    if (conversation?.isReady !== true || this.announcer === null) return {};
    const items = this.announcer.say(conversation.current, this.ports.now());
    const next = this.announcer.nextAt;
    if (next !== null) this.alarms.set("announce", Math.max(0, next - this.ports.now()), () => this.pace.soon());
    return items.length > 0 ? { announcement: { id: this.snapshot.announcement.id + 1, items } } : {};
  }

  // -- who we are

  start(): void {
    const onWake = () => {
      this.door.checkNow();
      this.lookAgain();
    };
    const onHide = () => {
      this.markSeen();
      this.awaySeq = this.visibleSeq();
    };
    this.stopListening = [this.ports.onWake(onWake), this.ports.onHide(onHide)];
    void this.door.check();
  }

  stop(): void {
    for (const stop of this.stopListening) stop();
    this.feed.stop();
    this.alarms.clearAll();
    this.pace.cancel();
  }

  leave(error: WireError | null): void {
    this.door.leave(error);
  }

  signIn(credentials: Credentials): Promise<boolean> {
    return this.door.signIn(credentials);
  }

  signOut(): Promise<void> {
    return this.door.signOut();
  }

  reconnectNow(): void {
    if (!this.door.checkNow()) this.feed.reconnectNow();
  }

  clear(): void {
    this.shelf.clear();
    this.list.clear();
    this.dirtyList = true;
  }

  forget(): void {
    for (const { id } of this.shelf.all) this.feed.unfollow(id);
    this.outbox.clear();
    this.drafts.clear();
    this.publish({ requests: NOTHING_ASKED });
    this.clear();
  }

  showCopy({ rows }: OfflineCopy): void {
    this.list.takeCopy(rows);
    for (const conversation of this.shelf.all) void this.showCopyOf(conversation);
    this.showList();
  }

  private async showCopyOf(conversation: Conversation): Promise<void> {
    const state = await this.door.copy?.state(conversation.id).catch(() => null);
    if (this.door.copy === null || conversation.isReady) return;
    if (state) conversation.showCopy(state);
    else conversation.refuse({ code: "unreachable", message: "It is not in the copy on this device." });
    this.dirty.add(conversation);
    this.flush();
  }

  // -- what the feed says

  onConnection(connection: Connection): void {
    this.outbox.setConnected(this.feed.isReady);
    if (connection.kind === "signed_out" && this.snapshot.session.phase === "signed_in") {
      this.publish({ connection, session: { phase: "signed_out", session: null, error: null, ended: "expired" } });
    } else this.publish({ connection });
  }

  onReady(): void {
    if (!this.list.isLoaded) void this.lookups.loadConversations();
    for (const conversation of this.shelf.all) {
      this.follow(conversation);
      this.syncDraft(conversation.id);
    }
  }

  onUnanswered(): void {
    void this.door.check();
  }

  onEvents(id: string, events: AnyEvent[]): void {
    const conversation = this.shelf.get(id);
    if (conversation === undefined) return;
    conversation.take(events);
    this.dirty.add(conversation);
    this.pace.soon();
  }

  onSnapshot(id: string, state: State): void {
    const conversation = this.shelf.get(id);
    if (conversation === undefined) return;
    if (conversation.adopt(state)) void this.history.refresh(conversation, state);
    this.dirty.add(conversation);
    this.pace.soon();
  }

  onCaughtUp(): void {
    this.pace.soon();
  }

  onListed(items: Listing[]): void {
    this.list.merge(items);
    this.dirtyList = true;
    // One may be answered and another opened in the same moment, so their number alone says nothing.
    const asked = new Set(this.snapshot.requests.items.map(({ conversation }) => conversation));
    if (items.some(({ id, open_requests }) => open_requests > 0 || asked.has(id))) this.lookups.requestsMayHaveChanged();
    this.pace.soon();
  }

  onListReset(): void {
    this.list.clear();
    this.lookups.requestsMayHaveChanged();
    void this.lookups.loadConversations();
  }

  followList(pos: number): void {
    this.feed.followList(pos);
  }

  onRefused(id: string, error: WireError): void {
    const conversation = this.shelf.get(id);
    conversation?.refuse(error);
    if (conversation?.isMissing === false) this.alarms.set(`refused:${id}`, REFUSED_MS, () => this.follow(conversation));
    this.pace.soon();
  }

  private follow(conversation: Conversation): void {
    if (conversation.openCount === 0) return;
    conversation.retry();
    this.feed.follow(conversation.id, conversation.heldSeq);
    this.pace.soon();
  }

  onOutbox(outbox: readonly OutboxEntry[]): void {
    this.publish({ outbox, open: this.openViews() });
  }

  onSignedOut(): void {
    this.leave(null);
  }

  appliedSeq(id: string): number | null {
    const conversation = this.shelf.get(id);
    return conversation !== undefined && conversation.openCount > 0 ? conversation.current.seq : null;
  }

  // -- conversations

  /** Rendering is a third of the page's code, so it comes beside the first data and not before the first paint. */
  private async loadRenderer(): Promise<void> {
    const [markdown, lines, work] = await Promise.all([
      import("./markdown").catch(() => null),
      import("./lines").catch(() => null),
      import("./turnwork").catch(() => null),
    ]);
    if (lines !== null) compareWith(lines);
    this.shelf.useRenderer(() => ({
      markdown: markdown === null ? new PlainBook() : new markdown.MarkdownBook(),
      work: work === null ? null : new work.TurnWork(),
    }));
    this.pace.soon();
  }

  private async loadAnnouncer(): Promise<void> {
    const loaded = await import("./announce").catch(() => null);
    if (loaded === null) return;
    this.newAnnouncer = () => new loaded.Announcer({ sentences: this.saysSentences });
    this.announceAnew();
    this.pace.soon();
  }

  /** What is there by now is read, not announced. */
  private announceAnew(): void {
    this.announcer = this.newAnnouncer?.() ?? null;
  }

  openConversation(id: string): void {
    this.alarms.clear(`close:${id}`);
    const conversation = this.shelf.open(id);
    this.follow(conversation);
    if (this.door.copy !== null) void this.showCopyOf(conversation);
    this.publish({ open: this.openViews() });
  }

  closeConversation(id: string): void {
    if (!this.shelf.close(id)) return;
    this.syncDraft(id);
    this.publish({ open: this.openViews() });
    this.alarms.set(`close:${id}`, LINGER_MS, () => this.leaveConversation(id));
  }

  private leaveConversation(id: string): void {
    this.feed.unfollow(id);
    for (const gone of this.shelf.thinOut()) this.feed.unfollow(gone.id);
  }

  setVisible(id: string | null): void {
    if (id === this.visible) return;
    this.markSeen();
    this.visible = id;
    this.awaySeq = null;
    this.left.arrive(id, id === null ? null : this.list.seenSeq(id));
    this.announceAnew();
    this.markSeen();
    this.showList();
  }

  loadOlder(id: string): Promise<void> {
    return this.history.loadOlder(this.shelf.get(id));
  }

  async reveal(id: string, seq: number): Promise<string | null> {
    await this.history.loadBackTo(this.shelf.get(id), seq);
    this.flush();
    const open = this.snapshot.open.get(id);
    const rows = (open?.rows ?? []).filter((row) => row.kind !== "day");
    // A search names where a text ended, which lies inside its message.
    const within = open && seq <= open.state.seq ? rows.findLast((row) => row.seq <= seq) : undefined;
    return (rows.find((row) => row.seq === seq) ?? within)?.key ?? null;
  }

  // -- commands

  command(conversation: string, body: CommandBody): string {
    // A copy is only looked at; what can be pressed there is not drawn.
    if (this.door.copy !== null) return "";
    return this.outbox.add(conversation, body);
  }

  send(conversation: string, content: string | Part[], options: SendOptions = {}): string {
    return this.command(conversation, { type: "send_message", content, ...options });
  }

  answered(commandId: string): Promise<Accepted> {
    return this.outbox.answered(commandId);
  }

  retry(commandId: string): void {
    this.outbox.retry(commandId);
  }

  discard(commandId: string): void {
    this.outbox.discard(commandId);
  }

  async create(body: CreateConversation): Promise<Accepted> {
    const known = { id: this.ports.newId(), client_request_id: this.ports.newId(), ...body };
    for (let tries = 1; ; tries++) {
      try {
        return await this.ports.api.create(known);
      } catch (cause) {
        const error = asApiError(cause);
        if (error.signedOut) this.leave(null);
        if (!error.retryable || tries === CREATE_TRIES) throw error;
        await new Promise<void>((resolve) => this.ports.after(backoffMs(tries, this.ports.random), resolve));
      }
    }
  }

  async upload(file: Blob, name: string): Promise<Upload> {
    return this.ports.api.upload(file, name);
  }

  // -- asking the server

  loadMoreConversations(): Promise<void> {
    return this.lookups.loadMoreConversations();
  }

  filterConversations(query: string): void {
    this.lookups.filterConversations(query);
  }

  showArchived(shown: boolean): void {
    this.list.showArchived(shown);
    this.showList();
    if (shown) void this.lookups.loadArchived();
  }

  loadRequests(): Promise<void> {
    return this.lookups.loadRequests();
  }

  loadAgents(): Promise<void> {
    return this.lookups.loadAgents();
  }

  search(query: string, conversation: string | null = null): void {
    this.lookups.search(query, conversation);
  }

  showList(): void {
    this.dirtyList = true;
    this.flush();
  }

  // -- what the person does to the page

  draft(conversation: string): string {
    return this.drafts.text(conversation, this.shelf.get(conversation)?.current.draft ?? "");
  }

  setDraft(conversation: string, text: string): void {
    this.drafts.set(conversation, text);
    this.publish({ open: this.openViews() });
    if (this.shelf.get(conversation) !== undefined) {
      this.alarms.set(`draft:${conversation}`, DRAFT_MS, () => this.syncDraft(conversation));
    }
  }

  /** Lets the person's other devices know. Lossy on purpose: the next pause, close or connection tries again. */
  private syncDraft(id: string): void {
    this.alarms.clear(`draft:${id}`);
    const text = this.drafts.unsynced(id);
    const conversation = this.shelf.get(id);
    if (text === null || conversation?.isReady !== true || !this.feed.isReady) return;
    if (text === conversation.current.draft) {
      this.drafts.synced(id, text);
      return;
    }
    const client_request_id = this.ports.newId();
    const command: Command =
      text === "" ? { type: "clear_draft", client_request_id } : { type: "set_draft", text, client_request_id };
    this.ports.api.command(id, command).catch(() => undefined);
  }

  setDisclosed(key: string, open: boolean): void {
    this.publish({ disclosure: new Map(this.snapshot.disclosure).set(key, open) });
  }

  select(conversation: string, key: string | null): void {
    this.selected = new Map(this.selected).set(conversation, key);
    this.publish({ open: this.openViews() });
  }

  setAnnouncements(sentences: boolean): void {
    this.saysSentences = sentences;
    this.announceAnew();
  }
}
