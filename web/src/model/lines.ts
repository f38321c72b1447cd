/**
 * A change as lines: from the arguments of an edit, or from a unified diff somebody else made. Pure.
 */

export type DiffSign = " " | "+" | "-" | "@";

export interface DiffLine {
  sign: DiffSign;
  text: string;
}

export interface Diff {
  path: string;
  lines: DiffLine[];
}

// Beyond this many cells the longest common subsequence costs a frame; then the change is shown as out and in.
const LCS_CELLS_LIMIT = 400_000;
// Unchanged lines kept around a change, as every diff tool does.
const CONTEXT_LINES = 3;

const cache = new WeakMap<object, Diff | null>();

/** The change a call makes, when its arguments tell. Cached by the arguments' identity: rows are drawn again and again. */
export function diffOfCall(name: string, input: unknown): Diff | null {
  if (input === null || typeof input !== "object") return null;
  const known = cache.get(input);
  if (known !== undefined) return known;
  const diff = readCall(name, input as Record<string, unknown>);
  cache.set(input, diff);
  return diff;
}

function readCall(name: string, input: Record<string, unknown>): Diff | null {
  const path = text(input["path"]) ?? text(input["file_path"]) ?? "";
  const patch = text(input["patch"]) ?? text(input["diff"]) ?? (looksLikePatch(input["input"]) ? text(input["input"]) : null);
  if (patch !== null) return { path, lines: parseUnified(patch) };
  if (Array.isArray(input["edits"])) {
    const lines = input["edits"].flatMap((edit: unknown) => {
      const one = edit !== null && typeof edit === "object" ? readCall(name, edit as Record<string, unknown>) : null;
      return one ? [...one.lines, { sign: "@" as const, text: "" }] : [];
    });
    return { path, lines: lines.slice(0, -1) };
  }
  const before = text(input["old"]) ?? text(input["old_string"]) ?? text(input["old_str"]);
  const after = text(input["new"]) ?? text(input["new_string"]) ?? text(input["new_str"]);
  if (before !== null && after !== null) return { path, lines: diffText(before, after) };
  const content = text(input["content"]) ?? text(input["file_text"]);
  if (content !== null && path !== "") return { path, lines: split(content).map((line) => ({ sign: "+", text: line })) };
  return null;
}

function text(value: unknown): string | null {
  return typeof value === "string" ? value : null;
}

function looksLikePatch(value: unknown): boolean {
  return typeof value === "string" && (value.startsWith("*** Begin Patch") || value.startsWith("--- ") || value.startsWith("diff "));
}

function split(value: string): string[] {
  if (value === "") return [];
  return (value.endsWith("\n") ? value.slice(0, -1) : value).split("\n");
}

export function isUnified(value: string): boolean {
  return /^(?:diff |--- |\*\*\* Begin Patch|@@ )/m.test(value);
}

// What programs say of a file beside its lines.
const BESIDE = /^(?:\+\+\+|---|\\ No newline|(?:index|similarity index|dissimilarity index|(?:new|deleted) file mode|(?:old|new) mode) |\*\*\* (?:Begin|End))/;

export function parseUnified(patch: string): DiffLine[] {
  const lines: DiffLine[] = [];
  let from = "";
  for (const line of split(patch)) {
    if (BESIDE.test(line)) continue;
    if (line.startsWith("rename from ")) from = line.slice(12);
    else if (line.startsWith("rename to ")) {
      // In the place of the line that names both with what the program puts before them.
      if (lines.at(-1)?.text.startsWith("diff ")) lines.pop();
      lines.push({ sign: "@", text: `${from} → ${line.slice(10)}` });
    } else if (/^(?:@@|diff |\*\*\* |Binary files )/.test(line)) lines.push({ sign: "@", text: line.replace(/^\*\*\* /, "") });
    else if (line.startsWith("+")) lines.push({ sign: "+", text: line.slice(1) });
    else if (line.startsWith("-")) lines.push({ sign: "-", text: line.slice(1) });
    else lines.push({ sign: " ", text: line.startsWith(" ") ? line.slice(1) : line });
  }
  return lines;
}

export function statOf(lines: readonly DiffLine[]): { added: number; removed: number } {
  let added = 0;
  let removed = 0;
  for (const line of lines) {
    if (line.sign === "+") added += 1;
    else if (line.sign === "-") removed += 1;
  }
  return { added, removed };
}

export function diffText(before: string, after: string): DiffLine[] {
  const old = split(before);
  const fresh = split(after);
  let head = 0;
  while (head < old.length && head < fresh.length && old[head] === fresh[head]) head += 1;
  let tail = 0;
  while (tail < old.length - head && tail < fresh.length - head && old.at(-1 - tail) === fresh.at(-1 - tail)) tail += 1;
  const same = (lines: string[]): DiffLine[] => lines.map((line) => ({ sign: " ", text: line }));
  return [
    ...same(old.slice(Math.max(0, head - CONTEXT_LINES), head)),
    ...diffMiddle(old.slice(head, old.length - tail), fresh.slice(head, fresh.length - tail)),
    ...same(old.slice(old.length - tail, old.length - tail + CONTEXT_LINES)),
  ];
}

function diffMiddle(old: string[], fresh: string[]): DiffLine[] {
  const out = (line: string): DiffLine => ({ sign: "-", text: line });
  const into = (line: string): DiffLine => ({ sign: "+", text: line });
  if (old.length * fresh.length > LCS_CELLS_LIMIT) return [...old.map(out), ...fresh.map(into)];
  const width = fresh.length + 1;
  const lengths = new Uint32Array((old.length + 1) * width);
  const at = (i: number, j: number): number => lengths[i * width + j] ?? 0;
  for (let i = old.length - 1; i >= 0; i -= 1) {
    for (let j = fresh.length - 1; j >= 0; j -= 1) {
      lengths[i * width + j] = old[i] === fresh[j] ? at(i + 1, j + 1) + 1 : Math.max(at(i + 1, j), at(i, j + 1));
    }
  }
  const lines: DiffLine[] = [];
  let i = 0;
  let j = 0;
  while (i < old.length || j < fresh.length) {
    const left = old[i];
    const right = fresh[j];
    if (left !== undefined && left === right) {
      lines.push({ sign: " ", text: left });
      i += 1;
      j += 1;
    } else if (left !== undefined && (right === undefined || at(i + 1, j) >= at(i, j + 1))) {
      lines.push(out(left));
      i += 1;
    } else if (right !== undefined) {
      lines.push(into(right));
      j += 1;
    }
  }
  return lines;
}
