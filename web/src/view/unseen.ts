/** How many things happened that nobody has looked at: the tab's title says that there are some. Seen once the page is looked at. */

import { useSyncExternalStore } from "react";

const listeners = new Set<() => void>();
let count = 0;

function set(value: number): void {
  if (value === count) return;
  count = value;
  for (const listener of listeners) listener();
}

export function addUnseen(more: number): void {
  set(count + more);
}

document.addEventListener("visibilitychange", () => {
  if (!document.hidden) set(0);
});

export function useUnseen(): number {
  return useSyncExternalStore(
    (listener) => {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    () => count,
  );
}
