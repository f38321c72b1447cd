/**
 * What this very page saw and did, so that it can say "by you" and "answered elsewhere" truthfully. The log knows who
 * answered, but not which of a person's windows is this one. Forgotten with the page.
 */

import type { Origin } from "../protocol/events.gen";
import { text } from "../text";

const seen = new Set<string>();
const done = new Set<string>();

export const witness = {
  /** This page showed it while it was open. */
  saw(id: string): void {
    seen.add(id);
  },
  /** This page answered or stopped it. */
  did(id: string): void {
    done.add(id);
  },
  /** It turned out that somebody else was first. */
  undo(id: string): void {
    done.delete(id);
  },
  elsewhere(id: string): boolean {
    return seen.has(id) && !done.has(id);
  },
  here(id: string): boolean {
    return done.has(id);
  },
};

/** The face a thing came through, in words; null when it is a page like this one. */
export function faceOf(origin: Origin | null | undefined): string | null {
  const face = origin?.face ?? "native";
  if (face === "native" || face === "web") return null;
  return text.message.faces[face] ?? face;
}
