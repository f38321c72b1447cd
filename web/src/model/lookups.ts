/**
 * What the page asks the server for beside conversations: the list's pages, requests that wait, agents, search.
 *
 * Called by the store. Answers go into the list book or the snapshot; the last question asked is the one answered.
 */

import type { WireError } from "../protocol/events.gen";
import { asApiError } from "../transport/api";
import type { Ports } from "../transport/ports";
import type { ListBook } from "./listbook";
import type { Alarms } from "./pace";
import { NO_SEARCH } from "./search";
import { renewed } from "./attention";
import type { Snapshot } from "./snapshot";

const LIST_SIZE = 50;

/** The most a page may hold. Older ones are found by their words. */
const ARCHIVED_SIZE = 500;

/** A pause in typing. */
const TYPING_MS = 200;

/** A server that answers everything else will answer this soon. */
const RETRY_MS = 3_000;

/** What it wants of the store. */
interface Shown {
  getSnapshot(): Snapshot;
  publish(change: Partial<Snapshot>): void;
  showList(): void;
  /** Changes of the list after this position. */
  followList(pos: number): void;
  /** The server does not know us any more. */
  leave(error: WireError | null): void;
}

export class Lookups {
  private readonly ports: Ports;
  private readonly list: ListBook;
  private readonly alarms: Alarms;
  private readonly shown: Shown;
  private searching: AbortController | null = null;
  /** How often it was asked what waits. */
  private asked = 0;

  constructor(ports: Ports, list: ListBook, alarms: Alarms, shown: Shown) {
    this.ports = ports;
    this.list = list;
    this.alarms = alarms;
    this.shown = shown;
  }

  // -- the list

  async loadConversations(): Promise<void> {
    try {
      const page = await this.ports.api.conversations({ limit: LIST_SIZE });
      this.list.takeFirstPage(page, this.ports.now());
      this.shown.followList(page.pos);
    } catch (cause) {
      const error = asApiError(cause);
      if (error.signedOut) this.shown.leave(null);
      else this.alarms.set("list", RETRY_MS, () => void this.loadConversations());
      this.list.fail(error.error);
    }
    this.shown.showList();
  }

  /** Those put away are no part of the list unless asked for. */
  async loadArchived(): Promise<void> {
    try {
      const { items } = await this.ports.api.conversations({ limit: ARCHIVED_SIZE, archived: true });
      this.list.merge(items);
    } catch {
      // Those that were put away while the page was open are at hand.
    }
    this.shown.showList();
  }

  async loadMoreConversations(): Promise<void> {
    const cursor = this.list.beginMore();
    if (cursor === null) return;
    const { query } = this.list;
    this.shown.showList();
    try {
      this.list.endMore(await this.ports.api.conversations({ limit: LIST_SIZE, cursor, query }), query);
    } catch {
      this.list.endMore(null, query);
    }
    this.shown.showList();
  }

  filterConversations(query: string): void {
    const text = query.trim();
    this.list.filter(text);
    this.shown.showList();
    if (text === "") this.alarms.clear("filter");
    else this.alarms.set("filter", TYPING_MS, () => void this.findConversations(text));
  }

  private async findConversations(query: string): Promise<void> {
    try {
      this.list.takeFound(await this.ports.api.conversations({ limit: LIST_SIZE, query }), query);
    } catch {
      // What is at hand is filtered already; the banner says that the server does not answer.
    }
    this.shown.showList();
  }

  // -- requests and agents

  /** Asked again soon, with whatever else changes until then: however much happens, a few times a second. */
  requestsMayHaveChanged(): void {
    if (this.shown.getSnapshot().requests.phase === "idle" || this.alarms.has("requests")) return;
    this.alarms.set("requests", TYPING_MS, () => void this.loadRequests());
  }

  async loadRequests(): Promise<void> {
    const { items, phase } = this.shown.getSnapshot().requests;
    const question = ++this.asked;
    if (phase === "idle") this.shown.publish({ requests: { phase: "loading", items } });
    const fresh = await this.ports.api.requests().catch(() => null);
    // An answer that was overtaken by a later one is old.
    if (question !== this.asked) return;
    if (fresh === null) {
      this.shown.publish({ requests: { phase: "failed", items } });
      this.alarms.set("requests", RETRY_MS, () => void this.loadRequests());
      return;
    }
    const now = renewed(items, fresh);
    this.shown.publish({ requests: { phase: "ready", items: now } });
    if (now === items) return;
    this.list.takeAsking(now.flatMap(({ root, parent_kind }) => (parent_kind === "subagent" && root ? [root] : [])));
    this.shown.showList();
  }

  async loadAgents(): Promise<void> {
    const { items } = this.shown.getSnapshot().agents;
    if (items.length === 0) this.shown.publish({ agents: { phase: "loading", items } });
    try {
      this.shown.publish({ agents: { phase: "ready", items: await this.ports.api.agents() } });
    } catch {
      this.shown.publish({ agents: { phase: "failed", items } });
    }
  }

  // -- search

  search(query: string, conversation: string | null): void {
    this.searching?.abort();
    this.searching = null;
    const text = query.trim();
    if (text === "") {
      this.alarms.clear("search");
      this.shown.publish({ search: { ...NO_SEARCH, query, conversation } });
      return;
    }
    const { search } = this.shown.getSnapshot();
    this.shown.publish({ search: { ...search, phase: "typing", query, conversation, error: null } });
    this.alarms.set("search", TYPING_MS, () => void this.find(text));
  }

  private async find(q: string): Promise<void> {
    const searching = new AbortController();
    this.searching = searching;
    const { search } = this.shown.getSnapshot();
    this.shown.publish({ search: { ...search, phase: "loading" } });
    const where = search.conversation === null ? {} : { conversation: search.conversation };
    try {
      const hits = await this.ports.api.search({ q, ...where }, searching.signal);
      if (this.searching === searching) this.shown.publish({ search: { ...search, phase: "ready", hits } });
    } catch (cause) {
      const { error } = asApiError(cause);
      if (this.searching === searching) this.shown.publish({ search: { ...search, phase: "failed", hits: [], error } });
    }
  }
}
