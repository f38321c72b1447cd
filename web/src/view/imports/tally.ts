/** What an import came to, or would: counted file by file, and said. Pure. */

import type { Advance } from "../../transport/api.later";
import { count, number } from "../../measures";
import { list } from "../../sentences";
import { places } from "../../text.places";

export interface Tally {
  done: number;
  of: number;
  /** Conversations by what became of them. */
  outcomes: Readonly<Record<string, number>>;
  /** Files that could not be read. */
  unreadable: number;
  skippedLines: number;
}

export const NOTHING: Tally = { done: 0, of: 0, outcomes: {}, unreadable: 0, skippedLines: 0 };

export function counted(tally: Tally, { done, of, taken, problem, skipped_lines }: Advance): Tally {
  const outcome = taken?.outcome;
  return {
    done,
    of,
    outcomes: outcome ? { ...tally.outcomes, [outcome]: (tally.outcomes[outcome] ?? 0) + 1 } : tally.outcomes,
    unreadable: tally.unreadable + (problem ? 1 : 0),
    skippedLines: tally.skippedLines + (skipped_lines ?? 0),
  };
}

/** How many conversations are new or longer: what an import does. */
export function gain({ outcomes }: Tally): number {
  return (outcomes["made"] ?? 0) + (outcomes["grown"] ?? 0);
}

/** "Would add 398 · 14 known" before, "Added 398 · 14 known" after. */
export function sayTally(tally: Tally, dry: boolean): string {
  const words = places.imports;
  const made = tally.outcomes["made"] ?? 0;
  const grown = tally.outcomes["grown"] ?? 0;
  const doing = list(made > 0 && words.added(number(made), dry), grown > 0 && words.grown(number(grown), dry, made > 0));
  const rest = [
    ...Object.entries(tally.outcomes)
      .filter(([outcome]) => outcome !== "made" && outcome !== "grown")
      .map(([outcome, many]) => words.outcome(outcome, number(many))),
    tally.unreadable > 0 && words.unreadable(count(tally.unreadable, "file")),
    tally.skippedLines > 0 && words.skipped(count(tally.skippedLines, "damaged line")),
  ].filter((word) => word !== false);
  return [doing || (dry ? words.nothingNew : words.nothingAdded), ...rest].join(" · ");
}
