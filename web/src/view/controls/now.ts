/**
 * The clock the page shows durations with: one timer for everybody who looks at it, none while nobody does.
 */

import { createContext, use, useSyncExternalStore } from "react";

class Ticker {
  #listeners = new Set<() => void>();
  #timer: ReturnType<typeof setInterval> | undefined;
  #now = Date.now();
  readonly #everyMs: number;

  constructor(everyMs: number) {
    this.#everyMs = everyMs;
  }

  readonly subscribe = (listener: () => void): (() => void) => {
    this.#listeners.add(listener);
    this.#timer ??= setInterval(() => this.#tick(), this.#everyMs);
    return () => {
      this.#listeners.delete(listener);
      if (this.#listeners.size > 0) return;
      clearInterval(this.#timer);
      this.#timer = undefined;
    };
  };

  readonly now = (): number => {
    // While nobody subscribes, the time still has to be right for the first look.
    if (this.#timer === undefined) this.#now = Math.max(this.#now, Date.now() - (Date.now() % 100));
    return this.#now;
  };

  #tick(): void {
    this.#now = Date.now();
    for (const listener of this.#listeners) listener();
  }
}

const seconds = new Ticker(1000);
const minutes = new Ticker(30_000);

/** A moment that stands still, where the past is looked at. */
export const MomentContext = createContext<number | null>(null);

/** Now, renewed every second. */
export function useSeconds(): number {
  const moment = use(MomentContext);
  const now = useSyncExternalStore(seconds.subscribe, seconds.now);
  return moment ?? now;
}

/** Now, renewed twice a minute. */
export function useMinutes(): number {
  return useSyncExternalStore(minutes.subscribe, minutes.now);
}
