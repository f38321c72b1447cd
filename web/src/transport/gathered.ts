/** Lines on their way to the page: the first at once, those that follow closely together. Used by the socket's worker. */

/** Less than the page waits between two pictures, so nothing is seen later for it. */
export const GATHER_MS = 25;

export class Gathered {
  private readonly after: (delayMs: number, run: () => void) => void;
  private readonly give: (lines: string) => void;
  private waiting: string[] = [];
  private resting = false;

  constructor(after: (delayMs: number, run: () => void) => void, give: (lines: string) => void) {
    this.after = after;
    this.give = give;
  }

  add(lines: string): void {
    this.waiting.push(lines);
    if (!this.resting) this.passOn();
  }

  /** What waits, now. */
  passOn(): void {
    if (this.waiting.length === 0) return;
    const lines = this.waiting.join("\n");
    this.waiting = [];
    this.give(lines);
    if (this.resting) return;
    this.resting = true;
    this.after(GATHER_MS, () => {
      this.resting = false;
      this.passOn();
    });
  }
}
