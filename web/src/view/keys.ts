/** Keys in words: what counts as typing, which modifier is "command" here, and how F6 walks the regions. */

export const isMac = /Mac|iPhone|iPad/.test(navigator.userAgent);

/** Ctrl on most machines, Cmd on Apple's. */
export function withCommandKey(event: KeyboardEvent, key: string): boolean {
  const held = isMac ? event.metaKey && !event.ctrlKey : event.ctrlKey && !event.metaKey;
  return held && !event.altKey && !event.shiftKey && event.key.toLowerCase() === key;
}

export const commandKey = isMac ? "⌘" : "Ctrl+";
export const altKey = isMac ? "⌥" : "Alt+";

/** Letters belong to whoever writes; shortcuts without a modifier must not take them. */
export function isTyping(target: EventTarget | null): boolean {
  return target instanceof HTMLElement && (target.isContentEditable || /^(?:INPUT|TEXTAREA|SELECT)$/.test(target.tagName));
}

/** Moves focus to the next part of the page: list, header, transcript, dock, composer. */
export function cycleRegions(backwards: boolean): void {
  const regions = [...document.querySelectorAll<HTMLElement>("[data-region]")].filter((region) => region.offsetParent !== null);
  if (regions.length === 0) return;
  const at = regions.findLastIndex((region) => region.contains(document.activeElement));
  const next = at === -1 ? 0 : (at + (backwards ? -1 : 1) + regions.length) % regions.length;
  const region = regions[next];
  // A region may say which of its parts takes the focus.
  (region?.querySelector<HTMLElement>("[data-region-focus]") ?? region)?.focus();
}

/** A command of the palette asks a part of the page for something; that part listens while it is there. */
export type PageRequest = "settings" | "grants" | "find" | "rename" | "end" | "start" | "search" | "compose" | "list";

const page = new EventTarget();

export function ask(request: PageRequest): void {
  page.dispatchEvent(new Event(request));
}

export function onAsked(request: PageRequest, run: () => void): () => void {
  page.addEventListener(request, run);
  return () => page.removeEventListener(request, run);
}
