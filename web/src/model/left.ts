/**
 * Where the reader left a conversation, for the line "new since you left": what came behind it is new, for as long as one stays.
 *
 * Called by the store when a conversation is arrived at, and when the page is put away and looked at again. Kept with the tab,
 * so that a reload draws the line where it was.
 */

import type { KeyValue } from "../transport/ports";
import type { Row } from "./rows";

const STORED_UNDER = "palaver.left";

interface Leaving {
  readonly conversation: string;
  /** Null: nothing was new. */
  readonly seq: number | null;
  /** Whether anything is new is known only once the conversation is there. */
  readonly settled: boolean;
}

export class Left {
  private readonly storage: KeyValue;
  private leaving: Leaving | null;

  constructor(storage: KeyValue) {
    this.storage = storage;
    this.leaving = restored(storage.get(STORED_UNDER));
  }

  /** `seen`: the last event that was on a screen of this device; null when none ever was. */
  arrive(conversation: string | null, seen: number | null): void {
    if (conversation === null) this.keep(null);
    else if (this.leaving?.conversation !== conversation) this.keep({ conversation, seq: seen, settled: seen === null });
  }

  /** The page was away and is looked at again. */
  back(conversation: string, seen: number): void {
    this.keep({ conversation, seq: seen, settled: false });
  }

  seqIn(conversation: string): number | null {
    return this.leaving?.conversation === conversation ? this.leaving.seq : null;
  }

  /** The conversation is there: if it holds nothing new, nothing that comes later counts as such. */
  settle(conversation: string, rows: readonly Row[]): void {
    if (this.leaving === null || this.leaving.conversation !== conversation || this.leaving.settled) return;
    const { seq } = this.leaving;
    this.keep({ conversation, seq: seq !== null && freshFrom(rows, seq) > 0 ? seq : null, settled: true });
  }

  private keep(leaving: Leaving | null): void {
    this.leaving = leaving;
    this.storage.set(STORED_UNDER, leaving === null ? null : JSON.stringify(leaving));
  }
}

/** The first row that came after an event; -1 when none did. From the end, where it is. */
export function freshFrom(rows: readonly Row[], seq: number): number {
  let at = rows.length;
  while (at > 0 && isAfter(rows[at - 1] as Row, seq)) at -= 1;
  return at < rows.length && rows[at]?.kind !== "activity" ? at : -1;
}

function isAfter(row: Row, seq: number): boolean {
  return row.kind === "activity" || row.seq > seq;
}

function restored(stored: string | null): Leaving | null {
  try {
    const known = JSON.parse(stored ?? "null");
    return typeof known?.conversation === "string" ? known : null;
  } catch {
    return null;
  }
}
