/**
 * What happened in conversations between one look at the list and the next: a turn that came to its end, or failed. Pure but
 * for what it remembers.
 *
 * Called by the notifier with each list. Subagents are left out: whom they work for tells of them.
 */

import type { Listing } from "../protocol/events.gen";

export interface Happening {
  /** One for the same event in every tab. */
  readonly key: string;
  readonly kind: "done" | "failed";
  readonly conversation: string;
  readonly title: string;
  readonly agent: string;
  readonly lastLine: string;
}

export class Ends {
  /** The turn that ran in each conversation; null before the first list. */
  private running: ReadonlyMap<string, string> | null = null;

  take(rows: ReadonlyMap<string, Listing>): Happening[] {
    const before = this.running;
    this.running = new Map([...rows.values()].flatMap(({ id, turn }) => (turn === null ? [] : [[id, turn] as const])));
    if (before === null) return [];
    return [...before].flatMap(([id, turn]) => {
      const row = rows.get(id);
      // One that goes on with the next message in its queue, or waits for a person, has not come to its end.
      if (row === undefined || row.turn !== null || row.open_requests > 0 || row.parent_kind === "subagent") return [];
      const { title, agent, last_line: lastLine } = row;
      return { key: `${id}:${turn}`, kind: row.status === "error" ? "failed" : "done", conversation: id, title, agent, lastLine } as const;
    });
  }
}
