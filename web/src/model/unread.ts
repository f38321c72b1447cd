/**
 * Which conversations hold something the reader has not seen, remembered on this device.
 *
 * What was opened here is known by its seq; what never was, by the moment at which this device first saw the list: a new
 * device does not begin with everything unread, and old conversations that are brought from another program are no news.
 */

import type { Listing } from "../protocol/events.gen";
import type { KeyValue } from "../transport/ports";

const STORED_UNDER = "palaver.seen";

/** A line of storage each; whoever opened more than this has long seen the oldest. */
const KEEP = 500;

export class Seen {
  private readonly storage: KeyValue;
  private seqs: Map<string, number>;
  private sinceMs: number | null;

  constructor(storage: KeyValue) {
    this.storage = storage;
    const { seqs, sinceMs } = restored(storage.get(STORED_UNDER));
    this.seqs = new Map(seqs);
    this.sinceMs = sinceMs;
  }

  /** The first list this device ever saw counts as seen: up to its newest, since the server's clock may not be ours. */
  begin(listings: readonly Listing[], now: number): void {
    if (this.sinceMs !== null) return;
    this.sinceMs = listings.length === 0 ? now : Math.max(...listings.map((listing) => listing.updated_at));
    this.save();
  }

  mark(conversation: string, seq: number): void {
    if ((this.seqs.get(conversation) ?? -1) >= seq) return;
    this.seqs.delete(conversation);
    this.seqs.set(conversation, seq);
    this.save();
  }

  /** The last event of a conversation that was shown here; null when it never was. */
  seqOf(conversation: string): number | null {
    return this.seqs.get(conversation) || null;
  }

  isUnread(listing: Listing): boolean {
    const seen = this.seqs.get(listing.id);
    return seen === undefined ? listing.updated_at > (this.sinceMs ?? Infinity) : listing.seq > seen;
  }

  private save(): void {
    const seqs = [...this.seqs].slice(-KEEP);
    this.storage.set(STORED_UNDER, JSON.stringify({ seqs, sinceMs: this.sinceMs }));
  }
}

function restored(stored: string | null): { seqs: [string, number][]; sinceMs: number | null } {
  try {
    const { seqs, sinceMs = null } = JSON.parse(stored ?? "");
    return { seqs, sinceMs };
  } catch {
    return { seqs: [], sinceMs: null };
  }
}
