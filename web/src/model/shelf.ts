/**
 * The conversations the page holds: those that are open, and a few that were left, to be reopened without a fetch of the whole.
 *
 * Owned by the store. Does no I/O: whom to follow and when somebody has really left is the store's.
 */

import { Conversation } from "./conversation";
import type { OpenConversation, Renderer } from "./snapshot";

/** Closed conversations kept in memory. */
const KEEP_CLOSED = 6;

export class Shelf {
  private readonly held = new Map<string, Conversation>();
  private readonly dayOf: (ts: number) => number;
  /** Null until the renderer is loaded. */
  private newRenderer: (() => Renderer) | null = null;

  constructor(dayOf: (ts: number) => number) {
    this.dayOf = dayOf;
  }

  get(id: string | null): Conversation | undefined {
    return id === null ? undefined : this.held.get(id);
  }

  get all(): Conversation[] {
    return [...this.held.values()];
  }

  clear(): void {
    this.held.clear();
  }

  useRenderer(newRenderer: () => Renderer): void {
    this.newRenderer = newRenderer;
    for (const conversation of this.all) conversation.useRenderer(newRenderer());
  }

  open(id: string): Conversation {
    const conversation = this.held.get(id) ?? new Conversation(id, this.dayOf);
    if (this.newRenderer !== null) conversation.useRenderer(this.newRenderer());
    // Put at the end: the first is the one left for longest.
    this.held.delete(id);
    this.held.set(id, conversation);
    conversation.openCount += 1;
    return conversation;
  }

  /** Whether nobody has it open any more. */
  close(id: string): boolean {
    const conversation = this.held.get(id);
    if (conversation === undefined) return false;
    conversation.openCount = Math.max(0, conversation.openCount - 1);
    return conversation.openCount === 0;
  }

  /** Takes away those that were left for longest, if there are too many. */
  thinOut(): Conversation[] {
    const closed = this.all.filter(({ openCount }) => openCount === 0);
    const gone = closed.slice(0, Math.max(0, closed.length - KEEP_CLOSED));
    for (const { id } of gone) this.held.delete(id);
    return gone;
  }

  /** The same map when nothing in it changed. */
  views(known: ReadonlyMap<string, OpenConversation>, viewOf: (conversation: Conversation) => OpenConversation): ReadonlyMap<string, OpenConversation> {
    const views = this.all.filter(({ openCount }) => openCount > 0).map(viewOf);
    const same = views.length === known.size && views.every((view) => known.get(view.id) === view);
    return same ? known : new Map(views.map((view) => [view.id, view]));
  }
}
