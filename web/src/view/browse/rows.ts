/** Which conversations the session browser lists, in which group; and what each is doing. Pure. */

import { type GroupName, groupOf } from "../../model/listing";
import type { Listing } from "../../protocol/events.gen";

export type RowState = "idle" | "running" | "waiting" | "failed" | "archived";

export type Wanted = "open" | Exclude<RowState, "idle">;

export interface Filters {
  words: string;
  agent: string;
  folder: string;
  state: Wanted;
}

export const NO_FILTERS: Filters = { words: "", agent: "", folder: "", state: "open" };

export interface Group {
  name: GroupName | "archived";
  items: readonly Listing[];
}

const ORDER: readonly Group["name"][] = ["waiting", "active", "today", "older", "archived"];

/** `asking`: conversations whose subagents wait for a person. */
export function stateOf(row: Listing, asking: ReadonlySet<string>): RowState {
  if (row.archived) return "archived";
  if (row.open_requests > 0 || asking.has(row.id)) return "waiting";
  if (row.turn !== null) return "running";
  return row.status === "error" ? "failed" : "idle";
}

/** `found`: what the server matched to the words. */
export function groupsOf(
  rows: Iterable<Listing>,
  filters: Filters,
  at: { today: number; asking: ReadonlySet<string>; found: ReadonlySet<string> },
): Group[] {
  const groups = new Map<Group["name"], Listing[]>(ORDER.map((name) => [name, []]));
  for (const row of rows) {
    if (!fits(row, filters, at.asking, at.found)) continue;
    groups.get(row.archived ? "archived" : at.asking.has(row.id) ? "waiting" : groupOf(row, at.today))?.push(row);
  }
  for (const items of groups.values()) items.sort((one, other) => other.updated_at - one.updated_at || other.pos - one.pos);
  return ORDER.map((name) => ({ name, items: groups.get(name) ?? [] })).filter(({ items }) => items.length > 0);
}

function fits(row: Listing, { words, agent, folder, state }: Filters, asking: ReadonlySet<string>, found: ReadonlySet<string>): boolean {
  if (row.deleted || row.parent_kind === "subagent") return false;
  if (agent !== "" && row.agent !== agent) return false;
  if (folder !== "" && row.project !== folder) return false;
  const now = stateOf(row, asking);
  if (state === "open" ? now === "archived" : now !== state) return false;
  const text = `${row.title} ${row.last_line}`.toLowerCase();
  return found.has(row.id) || words.toLowerCase().split(/\s+/).every((word) => text.includes(word));
}

/** What can be chosen: the values there are, the most frequent first. */
export function choices(rows: Iterable<Listing>, of: (row: Listing) => string | null): string[] {
  const counts = new Map<string, number>();
  for (const row of rows) {
    const value = of(row);
    if (value !== null && value !== "" && !row.deleted) counts.set(value, (counts.get(value) ?? 0) + 1);
  }
  return [...counts].toSorted(([one, n], [other, m]) => m - n || one.localeCompare(other)).map(([value]) => value);
}
