/**
 * Everything that an approval approves, as lines to be shown: the preview, and every argument that the preview leaves out. Pure.
 *
 * The same as Python's `palaver/core/text/approval_text.py`, where the reasons stand; `tests/golden/texts/approvals.json` holds both to
 * it. Hidden characters are signs, and padding is folded and counted. No argument and no line of the preview is left out.
 */

import { changeLines, isLikeChange, namesFiles, PATCHES, shows, split, type Line } from "./changetext";
import type { Plan, PlanItem } from "../protocol/events.gen";
import type { CommandBody } from "./store";
import { visible } from "./visible";

export type ShownKind = "plain" | "same" | "add" | "cut" | "head" | "label" | "note" | "fold";

export interface Shown {
  readonly kind: ShownKind;
  /** Every second one stands for what was folded and is no content. */
  readonly pieces: readonly string[];
}

const BLANK_LINES = 3;
const SAME_LINES = 5;
const SPACES = 32;
const REPEATS = 80;
const UNIT_CHARACTERS = 8;
const CUT = /\[… [\d,]+ more bytes …\]|\(too many to compare\)/;
const MAIN = ["command", "cmd", "url"];
const HOST = /\b[a-z][a-z0-9+.-]*:\/\/(?:[^\s/?#@]*@)?([^\s/?#@:"'<>⟨⟩]+)/giu;

/** How many rows on the screen have not been in sight yet; all of them while they are not laid out (null). */
export function rowsLeft(rows: number | null, reached: number): number {
  return rows === null ? 0 : Math.max(0, rows - reached);
}

export function mayAllow(rows: number | null, reached: number): boolean {
  return rows !== null && rowsLeft(rows, reached) === 0;
}

export function approvalLines(preview: string | null, given: unknown): Shown[] {
  const shown = visible(preview ?? mainOf(given) ?? "");
  const change = isChange(shown, given) ? changeLines(shown) : null;
  const lines: Shown[] = shown === "" ? [] : (change?.map(([kind, text]) => ({ kind, pieces: [text] })) ?? plain(shown));
  for (const [name, value] of leftOut(given, shown, change ?? [])) lines.push(...argument(name, value));
  return [...fold(lines), ...hosts(lines)];
}

/** A text of its own in one piece, for a part of a form. */
export function foldedText(text: string): string {
  return fold(plain(visible(text)))
    .map(({ pieces }) => pieces.join(""))
    .join("\n");
}

/** A plan that is to be approved, to its last letter: its summary, its steps, its text as it was written. */
export function planLines(plan: Pick<Plan, "summary" | "text"> & { items: readonly Pick<PlanItem, "title" | "description">[] }): Shown[] {
  const lines = plain(visible(plan.summary));
  plan.items.forEach(({ title, description }, at) => {
    const [first = "", ...rest] = split(visible(title));
    lines.push({ kind: "label", pieces: [`${at + 1}. ${first}`] }, ...rest.map((line): Shown => ({ kind: "plain", pieces: [line] })));
    if (description) lines.push(...plain(visible(description)));
  });
  if (plan.text && plan.text !== plan.summary) lines.push({ kind: "plain", pieces: [""] }, ...plain(visible(plan.text)));
  return [...fold(lines), ...hosts(lines)];
}

/** Whether a command lets something happen that was asked for; an answer to a question may. */
export function allows(command: CommandBody): boolean {
  if (command.type === "resolve_request") return command.verdict === "allow" || (command.answers ?? []).length > 0;
  return command.type === "decide_tools" && (command.accepted === true || (command.decisions ?? []).some(({ accepted }) => accepted));
}

/** What a lasting yes covers, in one line: the label of an offer, and its rule where the label does not name it. */
export function offerText(label: string, match: string | null): string {
  const words = oneLine(label);
  const rule = oneLine(match ?? "").replace(/^program:/, "");
  return rule === "" || words.includes(rule) || words.startsWith("exactly this") ? words : `${words} (${rule})`;
}

function oneLine(text: string): string {
  return foldLine({ kind: "plain", pieces: [visible(text).trim().replaceAll("\n", "␊")] }).pieces.join("");
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return value !== null && typeof value === "object" && !Array.isArray(value);
}

function mainOf(given: unknown): string | null {
  if (typeof given === "string") return given;
  if (!isRecord(given)) return null;
  const name = MAIN.find((one) => typeof given[one] === "string" && given[one] !== "");
  return name === undefined ? null : (given[name] as string);
}

function leftOut(given: unknown, shown: string, change: readonly Line[]): (readonly [string, unknown])[] {
  if (given === null || given === undefined || isJsonOf(shown, given)) return [];
  if (!isRecord(given)) return isTextOf(shown, given) ? [] : [["", given]];
  // A change that is itself an argument was compared with no file: it vouches for no other.
  const vouches = namesFiles(shown) && !CUT.test(shown) && !Object.values(given).some((value) => isTextOf(shown, value));
  return Object.entries(given).filter(([name, value]) => !isTextOf(shown, value) && !(vouches && shows(change, name, value)));
}

/** A command, or the content of a file, that begins like a change is none. */
function isChange(shown: string, given: unknown): boolean {
  const others = isRecord(given) ? Object.entries(given).filter(([name]) => !PATCHES.has(name)) : [];
  return isLikeChange(shown) && !others.some(([, value]) => isTextOf(shown, value));
}

function isTextOf(shown: string, value: unknown): boolean {
  return typeof value === "string" && shown.trim() !== "" && visible(value).trim() === shown.trim();
}

function isJsonOf(shown: string, given: unknown): boolean {
  if (!/^[{[]/.test(shown)) return false;
  try {
    return canonical(JSON.parse(shown)) === canonical(given);
  } catch {
    return false;
  }
}

function canonical(value: unknown): string {
  return JSON.stringify(value, (_, one: unknown) => (isRecord(one) ? Object.fromEntries(Object.entries(one).sort(([a], [b]) => (a < b ? -1 : 1))) : one));
}

function argument(name: string, value: unknown): Shown[] {
  const text = visible(typeof value === "string" ? value : JSON.stringify(value, null, 2) ?? "null");
  const label = visible(name).replaceAll("\n", "␊");
  if (!text.includes("\n")) return [{ kind: "label", pieces: [label ? `${label}: ${text}` : text] }];
  return [...(label ? [{ kind: "label", pieces: [`${label}:`] } as const] : []), ...plain(text)];
}

function plain(text: string): Shown[] {
  return split(text).map((line) => ({ kind: "plain", pieces: [line] }));
}

function hosts(lines: readonly Shown[]): Shown[] {
  // oxlint-disable-next-line no-control-regex
  const found = lines.flatMap(({ pieces }) => [...pieces.join("").matchAll(HOST)].map(([, host = ""]) => host)).filter((host) => /[^\x00-\x7f]/.test(host));
  return [...new Set(found)].map((host) => ({ kind: "note", pieces: [`${host} is ${ascii(host)}`] }));
}

function ascii(host: string): string {
  try {
    return new URL(`http://${host}`).hostname;
  } catch {
    // oxlint-disable-next-line no-control-regex
    return host.replace(/[^\x00-\x7f]/gu, (letter) => `⟨${(letter.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, "0")}⟩`);
  }
}

function fold(lines: readonly Shown[]): Shown[] {
  const found: Shown[] = [];
  for (let at = 0; at < lines.length; ) {
    const first = lines[at] as Shown;
    const text = keyOf(first);
    let end = at + 1;
    while (end < lines.length && lines[end]?.kind === first.kind && keyOf(lines[end] as Shown) === text) end += 1;
    const many = end - at;
    if (text === "" && many >= BLANK_LINES) found.push(note(`⋯ ${count(many)} blank lines ⋯`));
    else if (text !== "" && many >= SAME_LINES) found.push(foldLine(first), note(`⋯ the same line ${count(many - 1)} more times ⋯`));
    else found.push(...lines.slice(at, end).map(foldLine));
    at = end;
  }
  return found;
}

function keyOf({ pieces }: Shown): string {
  const text = pieces.join("");
  // A space at the end of a line that is not blank means something to a shell.
  return text.trim() === "" ? "" : text;
}

function note(words: string): Shown {
  return { kind: "fold", pieces: ["", words, ""] };
}

function foldLine({ kind, pieces: whole }: Shown): Shown {
  const line = Array.from(whole.join(""));
  const text = (from: number, to?: number): string => line.slice(from, to).join("");
  const pieces: string[] = [];
  let at = 0;
  for (const [from, to, period] of padding(line)) {
    // What began within the fold before it goes on after it.
    const start = Math.max(from, at);
    const times = period ? Math.floor((to - start) / period) : 0;
    if (period ? times < REPEATS : to <= at) continue;
    const unit = text(start, start + period);
    const end = period ? start + times * period : to;
    pieces.push(text(at, start) + unit, unit ? `⋯ “${unit}” ${count(times - 1)} more times ⋯` : `⋯ ${count(end - start)} ${blanks(text(start, end))} ⋯`);
    at = end;
  }
  return { kind, pieces: [...pieces, text(at)] };
}

/** Runs of spaces (period 0) and of anything repeated, as start, end and period. In linear time: the text may be hostile. */
function padding(line: readonly string[]): (readonly [number, number, number])[] {
  const found: [number, number, number][] = [];
  const runs = (isSame: (at: number) => boolean, length: number, least: number, period: number): void => {
    for (let at = 0; at < length; at += 1) {
      const start = at;
      while (at < length && isSame(at)) at += 1;
      if (at - start >= least) found.push([start, at + period, period]);
    }
  };
  if (line.length >= SPACES) runs((at) => line[at] === " " || line[at] === "\t", line.length, SPACES, 0);
  for (let period = 1; period <= UNIT_CHARACTERS && line.length >= REPEATS; period += 1) {
    runs((at) => line[at] === line[at + period], line.length - period, (REPEATS - 1) * period, period);
  }
  return found.sort((one, other) => one[0] - other[0] || one[2] - other[2]);
}

function blanks(spaces: string): string {
  if (!spaces.includes(" ")) return "tabs";
  return spaces.includes("\t") ? "spaces and tabs" : "spaces";
}

function count(many: number): string {
  return many.toLocaleString("en");
}
