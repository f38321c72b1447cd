/**
 * Which conversations hold something the reader has not seen, remembered on this device.
 *
 * What was opened here is known by its seq; what never was, by the list's position when this device first saw the list,
 * so that a new device does not begin with everything unread.
 */

import type { Listing } from "../protocol/events.gen";
import type { KeyValue } from "../transport/ports";

const STORED_UNDER = "palaver.seen";

/** A line of storage each; whoever opened more than this has long seen the oldest. */
const KEEP = 500;

export class Seen {
  private readonly storage: KeyValue;
  private seqs: Map<string, number>;
  private basePos: number | null;

  constructor(storage: KeyValue) {
    this.storage = storage;
    const { seqs, basePos } = restored(storage.get(STORED_UNDER));
    this.seqs = new Map(seqs);
    this.basePos = basePos;
  }

  /** The first list this device ever saw counts as seen. */
  begin(listings: Iterable<Listing>): void {
    if (this.basePos !== null) return;
    this.basePos = Math.max(0, ...Array.from(listings, (listing) => listing.pos));
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
    return seen === undefined ? listing.pos > (this.basePos ?? Infinity) : listing.seq > seen;
  }

  private save(): void {
    const seqs = [...this.seqs].slice(-KEEP);
    this.storage.set(STORED_UNDER, JSON.stringify({ seqs, basePos: this.basePos }));
  }
}

function restored(stored: string | null): { seqs: [string, number][]; basePos: number | null } {
  try {
    const known = JSON.parse(stored ?? "");
    return { seqs: known.seqs, basePos: known.basePos };
  } catch {
    return { seqs: [], basePos: null };
  }
}
