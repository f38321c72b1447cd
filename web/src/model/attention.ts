/**
 * What waits for a person, seen from one conversation: its own requests, and those of the subagents that work for it.
 *
 * Called by the store when the list of requests comes, and by the dock, the blocks of subagents and the inbox. Pure.
 */

import type { Listing } from "../protocol/events.gen";
import type { WaitingRequest } from "../protocol/wire";

type ById = ReadonlyMap<string, Listing>;

/** A chain of subagents is never longer; a list that says otherwise must not keep us. */
const DEEPEST = 16;

/** The list with what did not change kept as it was, so that a card that is being filled in stays the same. */
export function renewed(known: readonly WaitingRequest[], fresh: readonly WaitingRequest[]): readonly WaitingRequest[] {
  const held = new Map(known.map((item) => [item.request.id, item]));
  const items = fresh.map((item) => {
    const same = held.get(item.request.id);
    return same !== undefined && JSON.stringify(same) === JSON.stringify(item) ? same : item;
  });
  return items.length === known.length && items.every((item, at) => item === known[at]) ? known : items;
}

/** Whether a subagent of this conversation asks, at whatever depth. */
export function isBelow(item: WaitingRequest, conversation: string, byId: ById): boolean {
  if (item.conversation === conversation) return false;
  if (item.parents?.includes(conversation)) return true;
  if (item.parent_kind === "subagent" && item.root === conversation) return true;
  let at = byId.get(item.conversation);
  for (let steps = 0; at?.parent_kind === "subagent" && steps < DEEPEST; steps++) {
    if (at.parent === conversation) return true;
    at = at.parent === null ? undefined : byId.get(at.parent);
  }
  return false;
}

/** How many requests wait in this conversation or below it. */
export function waitingIn(items: readonly WaitingRequest[], conversation: string, byId: ById): number {
  return items.filter((item) => item.conversation === conversation || isBelow(item, conversation, byId)).length;
}
