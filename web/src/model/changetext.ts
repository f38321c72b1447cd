/**
 * A change as a unified diff shows it, and whether an argument of its call is to be read in it. Pure.
 *
 * The same as Python's `palaver/core/text/change_text.py`, where the reasons stand; `tests/golden/texts/approvals.json` holds both to it.
 * No argument counts as shown of which a letter is not in the change.
 */

import { visible } from "./visible";

type LineKind = "same" | "add" | "cut" | "head";
export type Line = readonly [kind: LineKind, text: string];
type Step = readonly [kind: string, text: string];

const CHANGE = /^(?:(--- .*\n\+\+\+ |diff --git |rename from )|@@ |\*\*\* Begin Patch)/;
const HUNK = /^@@ -\d+(?:,(\d+))? \+\d+(?:,(\d+))? @@/;
const NAME = /^(?:--- (?:a\/)?|\+\+\+ (?:b\/)?|rename (?:from|to) |\*\*\* (?:(?:Add|Update|Delete) File|Move to): )(.+)$/;
const FRAME = /^(?:@@(?: -\d+(?:,\d+)? \+\d+(?:,\d+)? @@)?|\*\*\* (?:Begin Patch|End Patch|End of File)|)$/;
const KINDS: Readonly<Record<string, LineKind>> = { "+": "add", "-": "cut", " ": "same" };

export const PATCHES: ReadonlySet<string> = new Set(["patch", "diff", "input"]);
const PATHS: ReadonlySet<string> = new Set(["path", "file_path"]);
const BEFORE: ReadonlySet<string> = new Set(["old", "old_string", "old_str"]);
const AFTER: ReadonlySet<string> = new Set(["new", "new_string", "new_str"]);
const WHOLE: ReadonlySet<string> = new Set(["content", "file_text"]);

export function isLikeChange(text: string): boolean {
  return CHANGE.test(text);
}

export function namesFiles(text: string): boolean {
  return CHANGE.exec(text)?.[1] !== undefined;
}

export function split(text: string): string[] {
  return withoutEnd(text).split("\n");
}

/** Every line of a unified diff; inside a hunk each is content, whatever it looks like. */
export function changeLines(text: string): Line[] {
  let before = 0;
  let after = 0;
  return split(text).map((line): Line => {
    const sign = line.slice(0, 1);
    const kind = KINDS[sign];
    if ((before > 0 || after > 0) && (kind || sign === "")) {
      if (sign !== "+") before -= 1;
      if (sign !== "-") after -= 1;
      return [kind ?? "same", line.slice(1)];
    }
    const found = HUNK.exec(line);
    if (found) {
      before = Number(found[1] ?? 1);
      after = Number(found[2] ?? 1);
      return ["head", line];
    }
    if (/^(?:---|\+\+\+) /.test(line) || !kind) return ["head", line];
    return [kind, line.slice(1)];
  });
}

/** Whether an argument of this name is in the change to its last letter. */
export function shows(change: readonly Line[], name: string, value: unknown): boolean {
  if (name === "edits") return Array.isArray(value) && value.length > 0 && value.every((edit) => showsEdit(change, edit));
  if (typeof value !== "string" || withoutEnd(value) === "") return false;
  const text = visible(value);
  if (PATHS.has(name)) return stepsOf(change).some(([kind, said]) => kind === "name" && said === text);
  if (BEFORE.has(name)) return sidesOf(change, "cut").some((side) => side.includes(withoutEnd(text)));
  if (AFTER.has(name)) return sidesOf(change, "add").some((side) => side.includes(withoutEnd(text)));
  if (WHOLE.has(name)) {
    const sides = sidesOf(change, "add");
    return sides.length === 1 && sides[0] === withoutEnd(text);
  }
  return PATCHES.has(name) && isInOrder(stepsOf(changeLines(text)), stepsOf(change));
}

function showsEdit(change: readonly Line[], edit: unknown): boolean {
  if (edit === null || typeof edit !== "object" || Array.isArray(edit)) return false;
  const parts = Object.entries(edit);
  return parts.length > 0 && parts.every(([name, value]) => (BEFORE.has(name) || AFTER.has(name)) && shows(change, name, value));
}

function withoutEnd(text: string): string {
  return text.endsWith("\n") ? text.slice(0, -1) : text;
}

/** What stood there before (`cut`) or stands there after (`add`), hunk by hunk. */
function sidesOf(change: readonly Line[], side: "cut" | "add"): string[] {
  const hunks: string[][] = [];
  let isOpen = false;
  for (const [kind, text] of change) {
    if (kind === "head") {
      // “\ No newline at end of file” stands within a hunk.
      isOpen &&= text.startsWith("\\ ");
      continue;
    }
    if (!isOpen) hunks.push([]);
    isOpen = true;
    if (kind === "same" || kind === side) hunks.at(-1)?.push(text);
  }
  return hunks.map((lines) => lines.join("\n"));
}

/** What a change says, without its frame: names of files, and lines that stay, come or go. */
function stepsOf(change: readonly Line[]): Step[] {
  return change.flatMap(([kind, text]): Step[] => {
    if (kind !== "head") return [[kind, text]];
    const name = NAME.exec(text)?.[1];
    if (name !== undefined) return [["name", name]];
    return FRAME.test(text) ? [] : [[kind, text]];
  });
}

function isInOrder(wanted: readonly Step[], steps: readonly Step[]): boolean {
  let at = 0;
  for (const step of steps) {
    const next = wanted[at];
    if (next && next[0] === step[0] && next[1] === step[1]) at += 1;
  }
  return wanted.length > 0 && at === wanted.length;
}
