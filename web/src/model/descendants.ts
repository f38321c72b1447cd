/** The subagents below a conversation as a tree, from rows of the list. Called by the block of a subagent. Pure. */

import type { Listing } from "../protocol/events.gen";

export interface Descendant {
  readonly row: Listing;
  readonly children: readonly Descendant[];
}

/** A chain of subagents is never longer; a list that says otherwise must not keep us. */
const DEEPEST = 16;

/** In the order they began. Of a row that is known twice the later one holds. */
export function descendantsOf(conversation: string, ...known: readonly Iterable<Listing>[]): Descendant[] {
  const rows = new Map<string, Listing>();
  for (const list of known) for (const row of list) if ((rows.get(row.id)?.seq ?? -1) <= row.seq) rows.set(row.id, row);
  const below = new Map<string, Listing[]>();
  for (const row of rows.values()) {
    if (row.parent_kind !== "subagent" || row.parent === null || row.deleted) continue;
    below.set(row.parent, [...(below.get(row.parent) ?? []), row]);
  }
  const childrenOf = (parent: string, depth: number): Descendant[] =>
    depth === DEEPEST
      ? []
      : (below.get(parent) ?? [])
          .toSorted((one, other) => one.created_at - other.created_at)
          .map((row) => ({ row, children: childrenOf(row.id, depth + 1) }));
  return childrenOf(conversation, 0);
}
