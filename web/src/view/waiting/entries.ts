/** What the inbox shows: what waits, and in its place what waited while it was looked at. Pure. */

import type { WaitingRequest } from "../../protocol/wire";

export interface Entry {
  item: WaitingRequest;
  /** It waits no more: somebody answered, or nobody did in time. */
  over: boolean;
}

/** Those that are over and still shown: enough to see what became of the last ones. */
const KEEP_OVER = 6;

export function entriesAfter(shown: readonly Entry[], items: readonly WaitingRequest[]): Entry[] {
  const waiting = new Map(items.map((item) => [item.request.id, item]));
  const kept = shown.map(({ item }): Entry => ({ item: waiting.get(item.request.id) ?? item, over: !waiting.has(item.request.id) }));
  const known = new Set(shown.map(({ item }) => item.request.id));
  const fresh = items.filter(({ request }) => !known.has(request.id)).map((item): Entry => ({ item, over: false }));
  let surplus = kept.filter(({ over }) => over).length - KEEP_OVER;
  const bounded = kept.filter(({ over }) => !over || surplus-- <= 0);
  return [...bounded, ...fresh].sort((one, other) => one.item.request.ts - other.item.request.ts);
}
