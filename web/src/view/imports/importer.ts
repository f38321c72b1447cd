/**
 * Imports under way, one program after the other. It lives beside the views: whoever looks at a conversation meanwhile does
 * not stop it. Closing the window does; what was brought by then stays, and the rest can be brought at any time.
 */

import type { Advance } from "../../transport/api.later";
import { asApiError } from "../../transport/api";
import { counted, NOTHING, type Tally } from "./tally";

/** `looking`: what would happen is being counted. `planned`: it was, and nothing was done yet. */
export type Phase = "waiting" | "looking" | "planned" | "importing" | "done" | "stopped" | "failed";

export interface Job {
  phase: Phase;
  tally: Tally;
  /** Why it failed. */
  problem: string | null;
}

export interface Source {
  importHistory(program: string, options: { dryRun: boolean; signal: AbortSignal }, tell: (advance: Advance) => void): Promise<void>;
}

/** Thousands of lines come in a second; a person reads a few numbers in one. */
const SHOW_EVERY_MS = 100;

export class Importer {
  private jobs: ReadonlyMap<string, Job> = new Map();
  private readonly listeners = new Set<() => void>();
  private readonly source: Source;
  private running: AbortController | null = null;
  private working = false;
  private queue: { program: string; dryRun: boolean }[] = [];

  constructor(source: Source) {
    this.source = source;
  }

  readonly subscribe = (listener: () => void): (() => void) => {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  };

  readonly current = (): ReadonlyMap<string, Job> => this.jobs;

  /** Count what an import of these would do. */
  look(programs: readonly string[]): Promise<void> {
    return this.enqueue(programs, true);
  }

  bring(programs: readonly string[]): Promise<void> {
    return this.enqueue(programs, false);
  }

  /** What runs stops after the file it reads; what waits is given up. */
  stop(): void {
    for (const { program } of this.queue.splice(0)) this.show(program, null);
    this.running?.abort();
  }

  /** Forget what came of it. */
  forget(program: string): void {
    this.show(program, null);
  }

  private async enqueue(programs: readonly string[], dryRun: boolean): Promise<void> {
    for (const program of programs) {
      this.queue.push({ program, dryRun });
      this.show(program, { phase: "waiting", tally: this.jobs.get(program)?.tally ?? NOTHING, problem: null });
    }
    if (this.working) return;
    this.working = true;
    for (let next = this.queue.shift(); next !== undefined; next = this.queue.shift()) await this.run(next.program, next.dryRun);
    this.working = false;
  }

  private async run(program: string, dryRun: boolean): Promise<void> {
    const running = (this.running = new AbortController());
    let tally = NOTHING;
    let soon: ReturnType<typeof setTimeout> | undefined;
    const phase = dryRun ? "looking" : "importing";
    this.show(program, { phase, tally, problem: null });
    try {
      await this.source.importHistory(program, { dryRun, signal: running.signal }, (advance) => {
        tally = counted(tally, advance);
        soon ??= setTimeout(() => {
          soon = undefined;
          this.show(program, { phase, tally, problem: null });
        }, SHOW_EVERY_MS);
      });
      clearTimeout(soon);
      this.show(program, { phase: dryRun ? "planned" : "done", tally, problem: null });
    } catch (cause) {
      clearTimeout(soon);
      if (!running.signal.aborted) this.show(program, { phase: "failed", tally, problem: asApiError(cause).message });
      // A count that nobody waited for says nothing.
      else this.show(program, dryRun ? null : { phase: "stopped", tally, problem: null });
    } finally {
      this.running = null;
    }
  }

  private show(program: string, job: Job | null): void {
    const jobs = new Map(this.jobs);
    if (job === null) jobs.delete(program);
    else jobs.set(program, job);
    this.jobs = jobs;
    for (const listener of this.listeners) listener();
  }
}
