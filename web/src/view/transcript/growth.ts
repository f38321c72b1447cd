/**
 * Where HTML that grows at its end differs from what it was: usually in the last words of its last element. Pure.
 *
 * Called by graft, so that only those words have to be parsed and not the paragraph before them.
 */

export interface Growth {
  /** How many last elements stand inside each other around the change. */
  readonly depth: number;
  /** Whether the last thing in the innermost of them is text, which `html` takes the place of. */
  readonly replaces: boolean;
  /** What stands there now: whole elements and text. */
  readonly html: string;
}

const CLOSERS = /(?:<\/\w+>\n?)+$/;
const CLOSER = /<\/\w+>\n?/g;
const TAG = /<(\/?)(\w+)/g;
/** They have no end. */
const VOID: ReadonlySet<string> = new Set(["br", "hr", "img", "input"]);

/** From `before` to `after`, or null when more than the end changed. */
export function growthOf(before: string, after: string): Growth | null {
  const closers = CLOSERS.exec(before)?.[0].match(CLOSER) ?? [];
  let tail = closers.join("");
  // The innermost first: there most words come.
  for (let depth = closers.length; depth > 0; depth--) {
    const end = before.length - tail.length;
    const from = before.lastIndexOf(">", end - 1) + 1;
    if (after.length >= from + tail.length && after.endsWith(tail) && after.startsWith(before.slice(0, from))) {
      const html = after.slice(from, after.length - tail.length);
      if (isWhole(html)) return { depth, replaces: from < end, html };
    }
    tail = tail.slice(closers[closers.length - depth]?.length ?? 0);
  }
  return null;
}

/** Every element that ends in it began in it, and the other way round. */
function isWhole(html: string): boolean {
  if (!html.includes("<")) return true;
  let open = 0;
  for (const [, end, name = ""] of html.matchAll(TAG)) {
    if (end) open -= 1;
    else if (!VOID.has(name)) open += 1;
    if (open < 0) return false;
  }
  return open === 0;
}
