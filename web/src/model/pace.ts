/** When things happen: network changes are shown at a steady pace, and delayed work has a name so that it can be put off. */

import type { Ports, Timers } from "../transport/ports";

/** 30 times a second: the eye sees a stream. */
const FLUSH_MS = 33;

/** Of its time the page draws at most a third: on a slow device it shows a stream less often, and still scrolls and answers. */
const REST = 3;

/** Timers of a hidden page are late, which is no slow device. */
const SLOWEST_FLUSH_MS = 250;

/** Runs a flush soon, with whatever else comes until then, and never more often than the pace. */
export class Pace {
  private readonly ports: Ports;
  private readonly flush: () => void;
  private nextAt = -Infinity;
  private drawnMs = 0;
  private cancelPending: (() => void) | null = null;

  constructor(ports: Ports, flush: () => void) {
    this.ports = ports;
    this.flush = flush;
  }

  soon(): void {
    if (this.cancelPending === null) this.wait();
  }

  private wait(): void {
    const { nextAt } = this;
    // A clock may be put back, or stand still: no wait is longer than the longest, nor done twice for the same moment.
    const waitMs = Math.min(nextAt - this.ports.now(), SLOWEST_FLUSH_MS);
    const next = () => {
      // By now it is known what the last flush took.
      if (this.nextAt > nextAt) this.wait();
      else this.cancelPending = this.ports.frame(this.flush);
    };
    if (waitMs > 0) this.cancelPending = this.ports.after(waitMs, next);
    else next();
  }

  /** A flush begins, asked for or not: nothing else is pending, and the next waits its time. */
  begin(): void {
    this.cancel();
    const begunAt = this.ports.now();
    this.nextAt = begunAt + FLUSH_MS;
    // Timers come after the flush was drawn.
    this.ports.after(0, () => {
      const drawnMs = this.ports.now() - begunAt;
      // One that takes long is a new picture and nothing to rest from; two are a slow device.
      const restMs = REST * Math.min(drawnMs, this.drawnMs);
      this.drawnMs = drawnMs;
      this.nextAt = begunAt + Math.min(Math.max(FLUSH_MS, restMs), SLOWEST_FLUSH_MS);
    });
  }

  cancel(): void {
    this.cancelPending?.();
    this.cancelPending = null;
  }
}

/** Delayed work by name: setting it again begins its delay anew. */
export class Alarms {
  private readonly timers: Timers;
  private readonly pending = new Map<string, () => void>();

  constructor(timers: Timers) {
    this.timers = timers;
  }

  set(name: string, delayMs: number, run: () => void): void {
    this.clear(name);
    const cancel = this.timers.after(delayMs, () => {
      this.pending.delete(name);
      run();
    });
    this.pending.set(name, cancel);
  }

  has(name: string): boolean {
    return this.pending.has(name);
  }

  clear(name: string): void {
    this.pending.get(name)?.();
    this.pending.delete(name);
  }

  clearAll(): void {
    for (const name of [...this.pending.keys()]) this.clear(name);
  }
}
