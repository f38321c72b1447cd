/**
 * Where the page is: `/`, `/c/{id}` with `?at=seq` to open a conversation at a place, or `/{screen}` with whatever the screen
 * makes of the rest. The address is the truth.
 */

import { type MouseEvent, useSyncExternalStore } from "react";
import { isScreen, type ScreenName } from "./screens";

/** Where in a conversation an address points. */
export interface Place {
  /** The event to show. */
  at: number | null;
  /** The message to show. */
  message: string | null;
  /** Another number each time somebody goes anywhere: a link to where one is already leads there again. */
  visit: number;
}

export interface Route extends Place {
  conversation: string | null;
  /** A screen beside conversations, and what follows it in the address. */
  screen: ScreenName | null;
  rest: string;
  /** Nothing is at this address. */
  missing: boolean;
}

const listeners = new Set<() => void>();
let shown = location.href;
let visit = 0;
let route = read();

function read(): Route {
  const [word = "", ...parts] = location.pathname.split("/").filter(Boolean);
  const rest = parts.join("/");
  const conversation = word === "c" && /^[\w-]{1,128}$/.test(rest) ? rest : null;
  const at = Number.parseInt(new URLSearchParams(location.search).get("at") ?? "", 10);
  const message = new URLSearchParams(location.hash.slice(1)).get("m");
  const screen = isScreen(word) ? word : null;
  visit += 1;
  return { conversation, at: Number.isSafeInteger(at) && at > 0 ? at : null, message, screen, rest, visit, missing: word !== "" && !conversation && !screen };
}

function current(): Route {
  if (location.href !== shown) {
    shown = location.href;
    route = read();
  }
  return route;
}

function tell(): void {
  for (const listener of listeners) listener();
}

/** Asked before the page goes elsewhere. True: not now; whoever says so goes on there by itself, or does not. */
type Holding = (address: string) => boolean;
let holding: Holding | null = null;

/** While something here would be lost. Returns what ends it. */
export function holdPage(hold: Holding): () => void {
  holding = hold;
  return () => {
    if (holding === hold) holding = null;
  };
}

window.addEventListener("popstate", () => {
  if (holding?.(location.href)) history.pushState(null, "", shown);
  else tell();
});
window.addEventListener("hashchange", tell);

export function addressOf(conversation: string | null, at?: number): string {
  if (conversation === null) return "/";
  return at === undefined ? `/c/${conversation}` : `/c/${conversation}?at=${at}`;
}

export function goTo(address: string, replace = false): void {
  if (holding?.(address)) return;
  if (replace) history.replaceState(null, "", address);
  else history.pushState(null, "", address);
  shown = location.href;
  route = read();
  tell();
}

/** For a link of ours: followed in this tab, unless a key asks the browser for another one. */
export function inThisTab(go: () => void): (event: MouseEvent) => void {
  return (event) => {
    if (event.metaKey || event.ctrlKey || event.shiftKey) return;
    event.preventDefault();
    go();
  };
}

export function useRoute(): Route {
  return useSyncExternalStore((listener) => {
    listeners.add(listener);
    return () => listeners.delete(listener);
  }, current);
}
