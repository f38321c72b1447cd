/** How the lines of a change are laid out: unchanged stretches folded, or old and new side by side. Pure. */

import type { DiffLine } from "../../model/lines";

/** Unchanged lines kept on either side of a change. */
const AROUND = 3;
/** Folding fewer than this saves nothing. */
const WORTH_FOLDING = 4;

export type Stretch = { readonly folded: boolean; readonly from: number; readonly lines: readonly DiffLine[] };

/** The lines in order, with long stretches of unchanged ones marked to be folded. */
export function stretches(lines: readonly DiffLine[]): Stretch[] {
  const found: Stretch[] = [];
  const put = (from: number, to: number, folded: boolean): void => {
    if (to <= from) return;
    const last = found.at(-1);
    if (last && !folded && !last.folded) found[found.length - 1] = { ...last, lines: lines.slice(last.from, to) };
    else found.push({ folded, from, lines: lines.slice(from, to) });
  };
  let at = 0;
  while (at < lines.length) {
    let end = at;
    const same = lines[at]?.sign === " ";
    while (end < lines.length && (lines[end]?.sign === " ") === same) end += 1;
    // At the edges there is a change on one side only.
    const from = same && at > 0 && lines[at - 1]?.sign !== "@" ? at + AROUND : at;
    const to = same && end < lines.length && lines[end]?.sign !== "@" ? end - AROUND : end;
    if (same && (at > 0 || end < lines.length) && to - from >= WORTH_FOLDING) {
      put(at, from, false);
      put(from, to, true);
      put(to, end, false);
    } else put(at, end, false);
    at = end;
  }
  return found;
}

/** What was and what is, line beside line. A heading stands on both sides. */
export type Pair = readonly [before: DiffLine | null, after: DiffLine | null];

export function pairs(lines: readonly DiffLine[]): Pair[] {
  const found: Pair[] = [];
  let at = 0;
  while (at < lines.length) {
    const line = lines[at] as DiffLine;
    if (line.sign === " " || line.sign === "@") {
      found.push([line, line]);
      at += 1;
      continue;
    }
    const cut: DiffLine[] = [];
    const added: DiffLine[] = [];
    for (; lines[at]?.sign === "-" || lines[at]?.sign === "+"; at += 1) {
      const one = lines[at] as DiffLine;
      // A removal after an addition begins another change.
      if (one.sign === "-" && added.length > 0) break;
      (one.sign === "-" ? cut : added).push(one);
    }
    for (let nth = 0; nth < Math.max(cut.length, added.length); nth += 1) found.push([cut[nth] ?? null, added[nth] ?? null]);
  }
  return found;
}
