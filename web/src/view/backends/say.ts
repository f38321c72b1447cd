/** A backend in words: which state it is in, what it can do, what a try of it came to. Pure. */

import type { BackendEntry, Trial } from "../../transport/api.later";
import { count, duration } from "../../measures";
import { said } from "../../sentences";
import { text } from "../../text";
import { later } from "../../text.later";
import { places } from "../../text.places";

export type BackendState = keyof typeof places.backends.states;

/** A try of an agent on a backend: since when it runs, or what came of it. */
export type Trying = { phase: "running"; agent: string; since: number } | { phase: "done"; agent: string; trial: Trial };

/** Colour says no more than the words do. */
export const TONES: Record<BackendState, "good" | "wait" | "bad" | "live"> = {
  ready: "good",
  missing: "wait",
  version: "wait",
  login: "wait",
  unready: "wait",
  testing: "live",
  failing: "bad",
};

export function stateOf(backend: BackendEntry, trying?: Trying): BackendState {
  if (trying?.phase === "running") return "testing";
  if (!backend.installed) return "missing";
  if (!backend.ready) return unreadyState(backend);
  return trying?.trial.ok === false ? "failing" : "ready";
}

function unreadyState({ login, summary }: BackendEntry): BackendState {
  if (login === "missing") return "login";
  // Only the server's sentence tells: which versions fit is each backend's own knowledge.
  return /\b(?:too (?:old|new)|version .*(?:needed|required)|wrong version)\b/i.test(summary) ? "version" : "unready";
}

/** The ready ones first; within both groups in the server's order. */
export function readyFirst(backends: readonly BackendEntry[]): BackendEntry[] {
  return backends.toSorted((a, b) => Number(b.ready) - Number(a.ready));
}

/** What it can do, as quiet words; empty when it never said. */
export function abilitiesOf({ capabilities }: BackendEntry): string[] {
  const words: Record<string, string> = places.backends.abilities;
  return Object.entries(capabilities ?? {}).flatMap(([name, can]) => (can ? [words[name] ?? name.replaceAll("_", " ")] : []));
}

export function inabilitiesOf({ capabilities }: BackendEntry): string[] {
  const words: Record<string, string> = places.backends.abilities;
  return Object.entries(capabilities ?? {}).flatMap(([name, can]) => (can ? [] : [words[name] ?? name.replaceAll("_", " ")]));
}

/** The server's sentence, and the version where it does not hold it; without the name that stands above it anyway. */
export function summaryOf({ title, version, summary }: BackendEntry): string {
  if (version === null) return summary;
  const words = summary === `${title} ${version}` ? "" : summary;
  return words.includes(version) ? words : text.join(words, places.backends.version(version));
}

export function processesOf({ processes }: BackendEntry): string {
  return count(processes, "process", "processes");
}

/** What came of a try, in a sentence; its answer apart. */
export function sayTrial({ ok, duration_ms, error }: Trial): string {
  if (ok) return places.backends.answered(duration(duration_ms));
  return error?.message ? said(error.message) : places.backends.noReason;
}

/** What to do about a failure whose kind is known. */
export function adviceOf({ ok, error }: Trial): string | null {
  return ok || error === null ? null : (later.error.advice[error.code] ?? null);
}
