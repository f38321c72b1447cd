/** Whether answers are read aloud. Off until somebody switches it on; remembered on this device. */

import { useSyncExternalStore } from "react";

const KEY = "palaver.aloud";
const listeners = new Set<() => void>();
let on = restored();

function restored(): boolean {
  try {
    return localStorage.getItem(KEY) === "on";
  } catch {
    return false;
  }
}

export function readsAloud(): boolean {
  return on;
}

export function readAloud(wanted: boolean): void {
  on = wanted;
  try {
    localStorage.setItem(KEY, wanted ? "on" : "off");
  } catch {
    // No storage: it lasts as long as this page.
  }
  for (const listener of listeners) listener();
}

export function useReadsAloud(): boolean {
  return useSyncExternalStore((listener) => {
    listeners.add(listener);
    return () => listeners.delete(listener);
  }, readsAloud);
}
