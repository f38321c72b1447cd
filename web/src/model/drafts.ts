/**
 * What stands in each composer: typed here, or left on another device.
 *
 * Text typed here wins until the server holds the same; from then on whatever the server holds is shown, so that a draft
 * follows the person from one device to the next. Kept over a reload of this tab.
 */

import type { KeyValue } from "../transport/ports";

const STORED_UNDER = "palaver.drafts";

export class Drafts {
  private readonly storage: KeyValue;
  /** Only what the server does not hold yet. */
  private readonly typed: Map<string, string>;

  constructor(storage: KeyValue) {
    this.storage = storage;
    this.typed = new Map(restored(storage.get(STORED_UNDER)));
  }

  text(conversation: string, onServer: string): string {
    return this.typed.get(conversation) ?? onServer;
  }

  set(conversation: string, text: string): void {
    this.typed.set(conversation, text);
    this.save();
  }

  /** What the server should be told, or null when it knows. */
  unsynced(conversation: string): string | null {
    return this.typed.get(conversation) ?? null;
  }

  /** The server holds this text now. If more was typed since, that still wins. */
  synced(conversation: string, onServer: string): void {
    if (this.typed.get(conversation) !== onServer) return;
    this.typed.delete(conversation);
    this.save();
  }

  clear(): void {
    this.typed.clear();
    this.save();
  }

  private save(): void {
    this.storage.set(STORED_UNDER, this.typed.size > 0 ? JSON.stringify([...this.typed]) : null);
  }
}

function restored(stored: string | null): [string, string][] {
  try {
    const drafts = JSON.parse(stored ?? "[]");
    return Array.isArray(drafts) ? drafts : [];
  } catch {
    return [];
  }
}
