/** When things happen: network changes are shown at a steady pace, and delayed work has a name so that it can be put off. */

import type { Ports, Timers } from "../transport/ports";

/** 30 times a second: the eye sees a stream. */
const FLUSH_MS = 33;

/** Of its time the page draws at most a fourth: on a slow device it shows a stream less often, and still scrolls and answers. */
const REST = 4;

/** However slow the device: later than this, with the drawing, text would be seen to lag. Timers of a hidden page are late too. */
const SLOWEST_FLUSH_MS = 200;

/** Runs a flush soon, with whatever else comes until then, and never more often than the pace. */
export class Pace {
  private readonly ports: Ports;
  private readonly flush: () => void;
  private nextAt = -Infinity;
  private drawnMs = 0;
  private cancelPending: (() => void) | null = null;
  /** Set while a flush is being drawn: what it takes decides when the next may begin. */
  private cancelMeasuring: (() => void) | null = null;
  private wanted = false;

  constructor(ports: Ports, flush: () => void) {
    this.ports = ports;
    this.flush = flush;
  }

  soon(): void {
    if (this.cancelMeasuring !== null) this.wanted = true;
    else if (this.cancelPending === null) this.wait();
  }

  private wait(): void {
    const next = () => {
      this.cancelPending = this.ports.frame(this.flush);
    };
    // A clock may be put back, or stand still: no wait is longer than the longest.
    const waitMs = Math.min(this.nextAt - this.ports.now(), SLOWEST_FLUSH_MS);
    if (waitMs > 0) this.cancelPending = this.ports.after(waitMs, next);
    else next();
  }

  /** A flush begins, asked for or not: nothing else is pending, and the next waits its time. */
  begin(): void {
    this.cancel();
    const begunAt = this.ports.now();
    // Timers come after the flush was drawn, but other messages may come before them.
    this.cancelMeasuring = this.ports.after(0, () => {
      this.cancelMeasuring = null;
      const drawnMs = this.ports.now() - begunAt;
      // One that takes long is a new picture and nothing to rest from; two are a slow device.
      const restMs = REST * Math.min(drawnMs, this.drawnMs);
      this.drawnMs = drawnMs;
      this.nextAt = begunAt + Math.min(Math.max(FLUSH_MS, restMs), SLOWEST_FLUSH_MS);
      if (!this.wanted) return;
      this.wanted = false;
      this.wait();
    });
  }

  cancel(): void {
    this.wanted = false;
    this.cancelPending?.();
    this.cancelPending = null;
    this.cancelMeasuring?.();
    this.cancelMeasuring = null;
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
