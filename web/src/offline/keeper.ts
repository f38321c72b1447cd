/**
 * Keeps the copy while somebody is signed in: the list and whatever conversation is open, a moment after it changed and when
 * the page is put away. Installs the service worker, without which nobody could open the copy.
 *
 * Started once by the page. Whether a copy is wanted is remembered on this device.
 */

import type { Snapshot, Store } from "../model/snapshot";
import type { State } from "../protocol/events.gen";
import { abridged, clearCopy, saveCopy } from "./copy";

const WANTED_UNDER = "palaver.copy";

/** A turn writes all the time; its end is what is read on the train. */
const SAVE_MS = 3_000;

const KEEP_ROWS = 200;

/** Without it no page opens offline, so there is nothing to copy for. */
export function canKeep(): boolean {
  return isSecureContext && "serviceWorker" in navigator && "indexedDB" in window;
}

export function isWanted(): boolean {
  try {
    return localStorage.getItem(WANTED_UNDER) !== "off";
  } catch {
    return false;
  }
}

export async function want(wanted: boolean): Promise<void> {
  try {
    localStorage.setItem(WANTED_UNDER, wanted ? "on" : "off");
  } catch {
    // Without storage there is no copy either.
  }
  if (!wanted) await clearCopy();
}

interface InstallOffer extends Event {
  prompt(): Promise<unknown>;
  readonly userChoice: Promise<{ outcome: "accepted" | "dismissed" }>;
}

/** The browser's offer to install the page, which it makes once and only for a while. */
class Installable {
  offer: InstallOffer | null = null;
  private readonly listeners = new Set<() => void>();

  constructor() {
    window.addEventListener("beforeinstallprompt", (event) => {
      event.preventDefault();
      this.set(event as InstallOffer);
    });
    window.addEventListener("appinstalled", () => this.set(null));
  }

  listen(run: () => void): () => void {
    this.listeners.add(run);
    return () => this.listeners.delete(run);
  }

  async ask(): Promise<"accepted" | "dismissed"> {
    const { offer } = this;
    if (offer === null) return "dismissed";
    await offer.prompt();
    const { outcome } = await offer.userChoice;
    this.set(null);
    return outcome;
  }

  private set(offer: InstallOffer | null): void {
    this.offer = offer;
    for (const listener of this.listeners) listener();
  }
}

export const installable = new Installable();

export function keep(store: Store, go: (address: string) => void): void {
  if (!canKeep()) return;
  // Not beside the first picture: it fetches the whole page once more. A browser that forbids it shows the page as ever.
  setTimeout(() => navigator.serviceWorker.register("/sw.js").catch(() => undefined), SAVE_MS);
  navigator.serviceWorker.addEventListener("message", ({ data }) => {
    if (typeof data?.go === "string" && data.go.startsWith("/")) go(data.go);
  });
  new Keeper(store).start();
}

class Keeper {
  private readonly store: Store;
  private saved: Snapshot | null = null;
  private timer: ReturnType<typeof setTimeout> | undefined;
  private saving: Promise<void> = Promise.resolve();
  private isForgotten = false;

  constructor(store: Store) {
    this.store = store;
  }

  start(): void {
    this.store.subscribe(() => {
      if (this.store.getSnapshot().session.phase === "signed_out") this.forget();
      else this.timer ??= setTimeout(() => this.save(), SAVE_MS);
    });
    document.addEventListener("visibilitychange", () => {
      if (document.hidden) this.save();
    });
    this.timer = setTimeout(() => this.save(), SAVE_MS);
  }

  private forget(): void {
    clearTimeout(this.timer);
    this.timer = undefined;
    this.saved = null;
    if (this.isForgotten) return;
    this.isForgotten = true;
    this.saving = this.saving.then(clearCopy).catch(() => undefined);
  }

  private save(): void {
    clearTimeout(this.timer);
    this.timer = undefined;
    const now = this.store.getSnapshot();
    const { session, list, agents } = now;
    if (!isWanted() || session.phase !== "signed_in" || session.session === null || list.phase !== "ready") return;
    const before = this.saved;
    if (before?.list === list && before.open === now.open && before.session === session) return;
    this.saved = now;
    this.isForgotten = false;
    const about = {
      session: session.session,
      agents: agents.items,
      rows: [...list.byId.values()].toSorted((one, other) => other.updated_at - one.updated_at).slice(0, KEEP_ROWS),
      savedAt: Date.now(),
    };
    const states = new Map<string, State>();
    for (const [id, { phase, state }] of now.open) {
      // While a turn writes it changes with every token; whoever goes away meanwhile has it as far as it is.
      if (state.turn !== null && !document.hidden) continue;
      const short = phase === "ready" || state.deleted ? abridged(state) : null;
      if (short !== null) states.set(id, short);
    }
    // One after another: a slow disk must not write an older copy last.
    this.saving = this.saving.then(() => saveCopy(about, states)).catch(() => undefined);
  }
}
