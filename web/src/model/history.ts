/**
 * Loading what is older than the messages at hand. Called by the store; the merging itself is in pages.ts.
 */

import type { State, WireError } from "../protocol/events.gen";
import { asApiError } from "../transport/api";
import type { Ports } from "../transport/ports";
import type { Conversation } from "./conversation";
import { PAGE_SIZE } from "./pages";

/** Pages asked for again because the history was changed meanwhile; a fourth time the fault is ours. */
const PAGE_TRIES = 3;

/** What it wants of the store. */
interface Shown {
  flush(): void;
  /** The server does not know us any more. */
  leave(error: WireError | null): void;
}

export class History {
  private readonly ports: Ports;
  private readonly shown: Shown;

  constructor(ports: Ports, shown: Shown) {
    this.ports = ports;
    this.shown = shown;
  }

  async loadOlder(conversation: Conversation | undefined): Promise<void> {
    if (conversation === undefined) return;
    for (let tries = 0; tries < PAGE_TRIES; tries++) {
      if (await this.loadPage(conversation)) return;
    }
  }

  /** Until the message that began at `seq` is there, the beginning is reached, or nothing comes any more. */
  async loadBackTo(conversation: Conversation | undefined, seq: number): Promise<void> {
    if (conversation === undefined) return;
    for (;;) {
      const { messages, offset } = conversation.current;
      const first = messages[0];
      if (offset === 0 || (first !== undefined && first.seq <= seq)) return;
      await this.loadOlder(conversation);
      if (conversation.current.messages[0]?.seq === first?.seq) return;
    }
  }

  /** Pages held over a hole are read again in quiet: what the hole changed in them is not known. */
  async refresh(conversation: Conversation, snapshot: State): Promise<void> {
    let before: number | null = snapshot.messages[0]?.seq ?? null;
    try {
      while (before !== null) {
        const { items } = await this.ports.api.messages(conversation.id, before, PAGE_SIZE);
        this.shown.flush();
        before = conversation.refreshPage(items, before);
        this.shown.flush();
      }
    } catch {
      // The next snapshot or page tries again; what is held is at worst as old as it was.
    }
  }

  /** Whether that is done with, one way or the other. */
  private async loadPage(conversation: Conversation): Promise<boolean> {
    const before = conversation.beginPage();
    if (before === null) return true;
    this.shown.flush();
    try {
      const { items } = await this.ports.api.messages(conversation.id, before, PAGE_SIZE);
      // What arrived first must be folded first: it may make the page stale.
      this.shown.flush();
      const merged = conversation.endPage(items, before);
      this.shown.flush();
      return merged;
    } catch (cause) {
      conversation.failPage();
      if (asApiError(cause).signedOut) this.shown.leave(null);
      this.shown.flush();
      return true;
    }
  }
}
