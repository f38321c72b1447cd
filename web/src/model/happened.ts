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
  /** The last turn that was over in each conversation; null before the first list. */
  private over: ReadonlyMap<string, string | null> | null = null;
  private newest = 0;

  take(rows: ReadonlyMap<string, Listing>): Happening[] {
    const [before, newest] = [this.over, this.newest];
    this.over = new Map([...rows.values()].map((row) => [row.id, row.last_turn]));
    this.newest = Math.max(newest, ...[...rows.values()].map((row) => row.updated_at));
    if (before === null) return [];
    return [...rows.values()].flatMap((row) => {
      const { id, title, agent, last_line: lastLine, last_turn: turn } = row;
      const known = before.get(id);
      // What was not in the list yet is news only when it is new: older pages of the list are not.
      const isNews = turn !== null && (known === undefined ? row.created_at > newest : known !== turn);
      // One that goes on with the next message in its queue, or waits for a person, has not come to its end.
      if (!isNews || row.turn !== null || row.open_requests > 0 || row.parent_kind === "subagent") return [];
      return { key: `${id}:${turn}`, kind: row.status === "error" ? "failed" : "done", conversation: id, title, agent, lastLine } as const;
    });
  }
}
