/** Light, dark or the system's. `public/theme.js` applies the choice before the first paint; this changes it. */

import { useSyncExternalStore } from "react";

export type Theme = "system" | "light" | "dark";

export const THEMES: readonly Theme[] = ["system", "light", "dark"];

const KEY = "palaver.theme";
const listeners = new Set<() => void>();

export function chosenTheme(): Theme {
  const theme = document.documentElement.dataset["theme"];
  return theme === "light" || theme === "dark" ? theme : "system";
}

export function chooseTheme(theme: Theme): void {
  if (theme === "system") delete document.documentElement.dataset["theme"];
  else document.documentElement.dataset["theme"] = theme;
  try {
    localStorage.setItem(KEY, theme);
  } catch {
    // No storage: the choice lasts until the page is closed.
  }
  for (const listener of listeners) listener();
}

export function nextTheme(): Theme {
  return THEMES[(THEMES.indexOf(chosenTheme()) + 1) % THEMES.length] ?? "system";
}

export function useTheme(): Theme {
  return useSyncExternalStore((listener) => {
    listeners.add(listener);
    return () => listeners.delete(listener);
  }, chosenTheme);
}
