import { afterEach, expect, test, vi } from "vitest";
import type { Advance } from "../../transport/api.later";
import { ApiError } from "../../transport/api";
import { Importer, type Source } from "./importer";

/** Answers each call with these lines, then waits for `finish`. */
class Scripted implements Source {
  readonly calls: string[] = [];
  readonly lines: Advance[];
  private readonly ends: (() => void)[] = [];
  private readonly fails: ((error: Error) => void)[] = [];

  constructor(lines: Advance[]) {
    this.lines = lines;
  }

  async importHistory(program: string, { dryRun, signal }: { dryRun: boolean; signal: AbortSignal }, tell: (advance: Advance) => void) {
    this.calls.push(`${dryRun ? "look" : "bring"} ${program}`);
    for (const line of this.lines) tell(line);
    await new Promise<void>((resolve, reject) => {
      this.ends.push(resolve);
      this.fails.push(reject);
      signal.addEventListener("abort", () => reject(signal.reason as Error));
    });
  }

  finish(): void {
    this.ends.at(-1)?.();
  }

  fail(error: Error): void {
    this.fails.at(-1)?.(error);
  }
}

const LINES: Advance[] = [
  { done: 1, of: 2, taken: { conversation: "a", outcome: "made" } },
  { done: 2, of: 2, taken: { conversation: "b", outcome: "known" } },
];

/** Until what was begun has got to its next wait. */
const settled = (): Promise<void> => new Promise((resolve) => setTimeout(resolve, 0));

function phases(importer: Importer): Record<string, string> {
  return Object.fromEntries([...importer.current()].map(([program, job]) => [program, job.phase]));
}

test("programs are looked at one after the other, then brought", async () => {
  const source = new Scripted(LINES);
  const importer = new Importer(source);
  const looked = importer.look(["claude", "codex"]);
  await settled();
  expect(phases(importer)).toEqual({ claude: "looking", codex: "waiting" });
  source.finish();
  await settled();
  expect(phases(importer)).toEqual({ claude: "planned", codex: "looking" });
  source.finish();
  await looked;
  expect(importer.current().get("claude")?.tally).toMatchObject({ done: 2, outcomes: { made: 1, known: 1 } });
  const brought = importer.bring(["claude"]);
  await settled();
  source.finish();
  await brought;
  expect(phases(importer)).toEqual({ claude: "done", codex: "planned" });
  expect(source.calls).toEqual(["look claude", "look codex", "bring claude"]);
});

afterEach(() => void vi.useRealTimers());

test("what came in a burst is shown even when nothing follows it, and a late showing changes no end", async () => {
  vi.useFakeTimers();
  const source = new Scripted(LINES);
  const importer = new Importer(source);
  const looked = importer.look(["claude"]);
  expect(importer.current().get("claude")?.tally.done).toBe(0);
  vi.advanceTimersByTime(1000);
  expect(importer.current().get("claude")).toMatchObject({ phase: "looking", tally: { done: 2, of: 2 } });
  source.finish();
  await looked;
  vi.advanceTimersByTime(1000);
  expect(phases(importer)).toEqual({ claude: "planned" });
});

test("stopping keeps what was brought and gives up what waits", async () => {
  const source = new Scripted(LINES.slice(0, 1));
  const importer = new Importer(source);
  const brought = importer.bring(["claude", "codex"]);
  await settled();
  importer.stop();
  await brought;
  expect(phases(importer)).toEqual({ claude: "stopped" });
  expect(importer.current().get("claude")?.tally.outcomes).toEqual({ made: 1 });
  expect(source.calls).toEqual(["bring claude"]);
});

test("a look that is stopped leaves nothing behind", async () => {
  const source = new Scripted(LINES);
  const importer = new Importer(source);
  const looked = importer.look(["claude"]);
  await settled();
  importer.stop();
  await looked;
  expect(phases(importer)).toEqual({});
});

test("a failure says why, and the next program goes on", async () => {
  const source = new Scripted(LINES);
  const importer = new Importer(source);
  const brought = importer.bring(["claude", "codex"]);
  await settled();
  source.fail(new ApiError(507, { code: "storage_full", message: "The disk is full." }));
  await settled();
  source.finish();
  await brought;
  expect(phases(importer)).toEqual({ claude: "failed", codex: "done" });
  expect(importer.current().get("claude")?.problem).toBe("The disk is full.");
});
