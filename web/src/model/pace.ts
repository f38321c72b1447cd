/** When things happen: network changes are shown at a steady pace, and delayed work has a name so that it can be put off. */

import type { Ports, Timers } from "../transport/ports";

/** 30 times a second: the eye sees a stream, and the main thread has two frames of three for itself. */
const FLUSH_MS = 33;

/** Runs a flush soon, with whatever else comes until then, and never more often than the pace. */
export class Pace {
  private readonly ports: Ports;
  private readonly flush: () => void;
  private begunAt = -Infinity;
  private cancelPending: (() => void) | null = null;

  constructor(ports: Ports, flush: () => void) {
    this.ports = ports;
    this.flush = flush;
  }

  soon(): void {
    if (this.cancelPending !== null) return;
    const wait = this.begunAt + FLUSH_MS - this.ports.now();
    const atFrame = () => {
      this.cancelPending = this.ports.frame(this.flush);
    };
    if (wait > 0) this.cancelPending = this.ports.after(wait, atFrame);
    else atFrame();
  }

  /** A flush begins, asked for or not: nothing else is pending, and the next waits its time. */
  begin(): void {
    this.cancel();
    this.begunAt = this.ports.now();
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
