/**
 * How components reach the store: the whole of it for doing things, a picked part of its snapshot for showing them.
 */

import { createContext, use, useCallback, useSyncExternalStore } from "react";
import { isBelow } from "../model/attention";
import type { OpenConversation, Snapshot, Store } from "../model/store";

export const StoreContext = createContext<Store | null>(null);

export function useStore(): Store {
  const store = use(StoreContext);
  if (store === null) throw new Error("no store above this component");
  return store;
}

/** A part of the snapshot. `pick` must return something that keeps its identity while it does not change. */
export function usePick<T>(pick: (snapshot: Snapshot) => T): T {
  const store = useStore();
  return useSyncExternalStore(store.subscribe, () => pick(store.getSnapshot()));
}

export function usePicked<T>(id: string, pick: (conversation: OpenConversation) => T): T | undefined {
  return usePick((snapshot) => {
    const conversation = snapshot.open.get(id);
    return conversation === undefined ? undefined : pick(conversation);
  });
}

/** Not in a copy, nor with a token that only reads. Without a session at hand nothing is forbidden: the server decides. */
export function useMayWrite(): boolean {
  return usePick(({ copiedAt, session }) => copiedAt === null && session.session?.roles.includes("send") !== false);
}

/** How many requests wait for a person; until they are loaded, in how many conversations they do. */
export function useWaitingCount(): number {
  return usePick(({ requests, list }) => (requests.phase === "ready" ? requests.items.length : Math.max(requests.items.length, list.waitingCount)));
}

/** Whether a subagent that works for this conversation waits for a person. */
export function useWaitsBelow(id: string): boolean {
  return usePick(({ requests, list }) => requests.items.some((item) => isBelow(item, id, list.byId)));
}

/** Whether a thing is open, and how to change that. It lives in the store: rows that scroll away forget. */
export function useDisclosed(key: string, byDefault = false): [boolean, (open: boolean) => void] {
  const store = useStore();
  const open = usePick((snapshot) => snapshot.disclosure.get(key)) ?? byDefault;
  const set = useCallback((value: boolean) => store.setDisclosed(key, value), [store, key]);
  return [open, set];
}
