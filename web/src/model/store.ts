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
import { ApiError, asApiError } from "../transport/api";
import { backoffMs } from "../transport/backoff";
import { type CommandBody, Outbox, type OutboxEntry, type OutboxListener } from "../transport/commands";
import type { Connection } from "../transport/connection";
import { Feed, type FeedListener } from "../transport/feed";
import type { OfflineCopy, Ports } from "../transport/ports";
import type { Announcer } from "./announce";
import { Conversation } from "./conversation";
import { Drafts } from "./drafts";
import { History } from "./history";
import { EMPTY_LIST } from "./listing";
import { Left } from "./left";
import { ListBook } from "./listbook";
import { Lookups } from "./lookups";
import { Alarms, Pace } from "./pace";
import { PlainBook } from "./plain";
import { NO_SEARCH } from "./search";
import type { OpenConversation, SendOptions, SessionState, Snapshot, Store, TextBook } from "./snapshot";
import { compareWith } from "./stat";
import { Seen } from "./unread";

export type { CommandBody } from "../transport/commands";
export type { OpenConversation, SendOptions, SessionState, Snapshot, Store } from "./snapshot";

/** Somebody who goes back at once finds the conversation live; somebody who left does not keep it streaming. */
const LINGER_MS = 5_000;

/** Closed conversations kept in memory, to reopen without a fetch of the whole. */
const KEEP_CLOSED = 6;

/** Each saved draft is an event on disk, so not every pause. */
const DRAFT_MS = 1_500;

/** A pause in what is being read. */
const SEEN_MS = 1_000;

/** A conversation the server refused for a reason that may pass. */
const REFUSED_MS = 3_000;

/** That somebody was signed in on this device, so that an end of it can be called one. */
const SIGNED_IN_UNDER = "palaver.signed_in";

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
  private readonly conversations = new Map<string, Conversation>();
  private readonly listeners = new Set<() => void>();
  private selected: ReadonlyMap<string, string | null> = new Map();
  private visible: string | null = null;
  /** Null until it is loaded, which the first picture does not wait for. */
  private announcer: Announcer | null = null;
  private newAnnouncer: (() => Announcer) | null = null;
  private saysSentences = true;
  private dirtyList = false;
  private readonly dirty = new Set<Conversation>();
  private checking = false;
  /** Shown while the server does not answer. */
  private copy: OfflineCopy | null = null;
  private stopListening: (() => void)[] = [];
  /** Null until the renderer is loaded. */
  private newTexts: (() => TextBook) | null = null;
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
    return this.visible === null ? null : (this.conversations.get(this.visible)?.heldSeq ?? null);
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
    const known = this.snapshot.open;
    const views = [...this.conversations.values()]
      .filter((conversation) => conversation.openCount > 0)
      .map((conversation) => this.viewOf(conversation));
    const same = views.length === known.size && views.every((view) => known.get(view.id) === view);
    return same ? known : new Map(views.map((view) => [view.id, view]));
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
    const conversation = this.visible === null ? undefined : this.conversations.get(this.visible);
    if (conversation?.isReady !== true || this.announcer === null) return {};
    const items = this.announcer.say(conversation.current, this.ports.now());
    const next = this.announcer.nextAt;
    if (next !== null) this.alarms.set("announce", Math.max(0, next - this.ports.now()), () => this.pace.soon());
    return items.length > 0 ? { announcement: { id: this.snapshot.announcement.id + 1, items } } : {};
  }

  // -- who we are

  start(): void {
    const onWake = () => {
      if (this.snapshot.session.phase === "unreachable") this.reconnectNow();
      this.lookAgain();
    };
    const onHide = () => {
      this.markSeen();
      this.awaySeq = this.visibleSeq();
    };
    this.stopListening = [this.ports.onWake(onWake), this.ports.onHide(onHide)];
    void this.checkSession(0);
  }

  stop(): void {
    for (const stop of this.stopListening) stop();
    this.feed.stop();
    this.alarms.clearAll();
    this.pace.cancel();
  }

  private async checkSession(attempt: number): Promise<void> {
    if (this.checking) return;
    this.checking = true;
    const answer = await this.ports.api.session().catch(asApiError);
    this.checking = false;
    if (!(answer instanceof ApiError)) this.enter({ phase: "signed_in", session: answer, error: null });
    // Why a link or a token was refused stays to be read.
    else if (answer.signedOut) this.leave(this.snapshot.session.error);
    else if (this.snapshot.session.phase !== "signed_in") {
      // Once signed in the feed's own tries bring us back here.
      this.publish({ session: { phase: "unreachable", session: this.copy?.session ?? null, error: answer.error } });
      if (this.copy === null) void this.showCopy();
      this.alarms.set("session", backoffMs(attempt, this.ports.random), () => void this.checkSession(attempt + 1));
    }
  }

  private async showCopy(): Promise<void> {
    const copy = await this.ports.offlineCopy();
    const { session } = this.snapshot;
    if (copy === null || session.phase !== "unreachable") return;
    this.copy = copy;
    this.list.takeCopy(copy.rows);
    this.dirtyList = true;
    for (const conversation of this.conversations.values()) void this.showCopyOf(conversation);
    this.publish({ session: { ...session, session: copy.session }, copiedAt: copy.savedAt, agents: { phase: "ready", items: copy.agents } });
    this.flush();
  }

  private async showCopyOf(conversation: Conversation): Promise<void> {
    const state = await this.copy?.state(conversation.id).catch(() => null);
    if (this.copy === null || conversation.isReady) return;
    if (state) conversation.showCopy(state);
    else conversation.refuse({ code: "unreachable", message: "It is not in the copy on this device." });
    this.dirty.add(conversation);
    this.flush();
  }

  private dropCopy(): void {
    this.copy = null;
    if (this.snapshot.copiedAt !== null) this.publish({ copiedAt: null });
  }

  private enter(session: SessionState): void {
    this.dropCopy();
    this.ports.device.set(SIGNED_IN_UNDER, "yes");
    this.publish({ session });
    this.feed.start();
  }

  leave(error: WireError | null, ended?: "left"): void {
    const wasIn = this.ports.device.get(SIGNED_IN_UNDER) !== null;
    if (ended !== undefined) this.ports.device.set(SIGNED_IN_UNDER, null);
    if (this.copy !== null) {
      this.conversations.clear();
      this.list.clear();
      this.dirtyList = true;
      this.dropCopy();
      this.flush();
    }
    this.feed.signOut();
    const why = ended ?? (wasIn ? ("expired" as const) : undefined);
    this.publish({ session: { phase: "signed_out", session: null, error, ...(why && { ended: why }) } });
  }

  async signIn(credentials: Credentials): Promise<boolean> {
    this.publish({ session: { phase: "checking", session: null, error: null } });
    const answer = await this.ports.api.signIn(credentials).catch(asApiError);
    if (answer instanceof ApiError) {
      this.publish({ session: { phase: "signed_out", session: null, error: answer.error } });
      return false;
    }
    this.enter({ phase: "signed_in", session: answer, error: null });
    return true;
  }

  async signOut(): Promise<void> {
    await this.ports.api.signOut().catch(() => undefined);
    for (const id of this.conversations.keys()) this.feed.unfollow(id);
    this.conversations.clear();
    this.outbox.clear();
    this.drafts.clear();
    this.list.clear();
    this.dirtyList = true;
    this.publish({ requests: NOTHING_ASKED });
    this.leave(null, "left");
    this.flush();
  }

  reconnectNow(): void {
    if (this.snapshot.session.phase === "unreachable") {
      this.alarms.clear("session");
      void this.checkSession(0);
    } else this.feed.reconnectNow();
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
    for (const conversation of this.conversations.values()) {
      this.follow(conversation);
      this.syncDraft(conversation.id);
    }
  }

  onUnanswered(): void {
    void this.checkSession(0);
  }

  onEvents(id: string, events: AnyEvent[]): void {
    const conversation = this.conversations.get(id);
    if (conversation === undefined) return;
    conversation.take(events);
    this.dirty.add(conversation);
    this.pace.soon();
  }

  onSnapshot(id: string, state: State): void {
    const conversation = this.conversations.get(id);
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
    const conversation = this.conversations.get(id);
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
    const conversation = this.conversations.get(id);
    return conversation !== undefined && conversation.openCount > 0 ? conversation.current.seq : null;
  }

  // -- conversations

  /** Rendering is a third of the page's code, so it comes beside the first data and not before the first paint. */
  private async loadRenderer(): Promise<void> {
    const [markdown, lines] = await Promise.all([import("./markdown").catch(() => null), import("./lines").catch(() => null)]);
    if (lines !== null) compareWith(lines);
    this.newTexts = () => (markdown === null ? new PlainBook() : new markdown.MarkdownBook());
    for (const conversation of this.conversations.values()) conversation.useTexts(this.newTexts());
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
    let conversation = this.conversations.get(id);
    if (conversation === undefined) conversation = new Conversation(id, this.ports.dayOf);
    if (this.newTexts !== null) conversation.useTexts(this.newTexts());
    // Put at the end: the first is the one left for longest.
    this.conversations.delete(id);
    this.conversations.set(id, conversation);
    conversation.openCount += 1;
    this.follow(conversation);
    if (this.copy !== null) void this.showCopyOf(conversation);
    this.publish({ open: this.openViews() });
  }

  closeConversation(id: string): void {
    const conversation = this.conversations.get(id);
    if (conversation === undefined) return;
    conversation.openCount = Math.max(0, conversation.openCount - 1);
    if (conversation.openCount > 0) return;
    this.syncDraft(id);
    this.publish({ open: this.openViews() });
    this.alarms.set(`close:${id}`, LINGER_MS, () => this.leaveConversation(id));
  }

  private leaveConversation(id: string): void {
    this.feed.unfollow(id);
    const closed = [...this.conversations.values()].filter((conversation) => conversation.openCount === 0);
    for (const { id: oldest } of closed.slice(0, Math.max(0, closed.length - KEEP_CLOSED))) {
      this.feed.unfollow(oldest);
      this.conversations.delete(oldest);
    }
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
    return this.history.loadOlder(this.conversations.get(id));
  }

  async reveal(id: string, seq: number): Promise<string | null> {
    await this.history.loadBackTo(this.conversations.get(id), seq);
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
    if (this.copy !== null) return "";
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
    return this.drafts.text(conversation, this.conversations.get(conversation)?.current.draft ?? "");
  }

  setDraft(conversation: string, text: string): void {
    this.drafts.set(conversation, text);
    this.publish({ open: this.openViews() });
    if (this.conversations.has(conversation)) {
      this.alarms.set(`draft:${conversation}`, DRAFT_MS, () => this.syncDraft(conversation));
    }
  }

  /** Lets the person's other devices know. Lossy on purpose: the next pause, close or connection tries again. */
  private syncDraft(id: string): void {
    this.alarms.clear(`draft:${id}`);
    const text = this.drafts.unsynced(id);
    const conversation = this.conversations.get(id);
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
