/**
 * Markdown by key in the message box: bold, italic, code, lists, quotes, and lines that go on as the one above began. Pure.
 *
 * Called by the box, which is loaded before this; until it is there the keys do nothing. Every change is one replacement of a
 * piece of the text, so that the browser can take it back.
 */

export interface Selection {
  readonly value: string;
  readonly start: number;
  readonly end: number;
}

/** Puts `text` in the place of what stands from `from` to `to`, and then selects from `start` to `end`. */
export interface Edit {
  readonly from: number;
  readonly to: number;
  readonly text: string;
  readonly start: number;
  readonly end: number;
}

export interface Press {
  readonly key: string;
  /** By its place on the keyboard: with Shift a digit types another sign. */
  readonly code: string;
  /** Ctrl, or Cmd on a Mac. */
  readonly command: boolean;
  readonly shift: boolean;
}

const FENCE = "```";
/** A list item or a quote: how its line begins, and what of it the next line repeats. */
const BEGINNING = /^(\s*)(?:([-*+]) (\[[ xX]\] )?|(\d{1,9})([.)]) |(> ?)+)/;

/** What a key does to the text; null when it means nothing here. */
export function editOf(selection: Selection, { key, code, command, shift }: Press): Edit | null {
  if (command && !shift) {
    switch (key.toLowerCase()) {
      case "b":
        return around(selection, "**");
      case "i":
        return around(selection, "*");
      case "e":
        return around(selection, "`");
    }
  }
  if (command && shift) {
    switch (code) {
      case "KeyE":
        return fenced(selection);
      case "KeyX":
        return around(selection, "~~");
      case "Digit7":
        return eachLine(selection, /^\d+[.)] /, (nth) => `${nth + 1}. `);
      case "Digit8":
        return eachLine(selection, /^[-*+] /, () => "- ");
      case "Digit9":
        return eachLine(selection, /^> ?/, () => "> ");
    }
  }
  return key === "Enter" && shift && !command ? nextLine(selection) : null;
}

/** An address put over selected words makes them a link to it. */
export function linked({ value, start, end }: Selection, pasted: string): Edit | null {
  const address = pasted.trim();
  const words = value.slice(start, end);
  if (words === "" || /\n/.test(words) || !/^https?:\/\/\S+$/.test(address) || /^https?:/.test(words)) return null;
  const text = `[${words}](${address})`;
  return { from: start, to: end, text, start: start + text.length, end: start + text.length };
}

function around({ value, start, end }: Selection, mark: string): Edit {
  const words = value.slice(start, end);
  const inside = isAround(value, start, end, mark);
  if (inside) return { from: start - mark.length, to: end + mark.length, text: words, start: start - mark.length, end: end - mark.length };
  return { from: start, to: end, text: `${mark}${words}${mark}`, start: start + mark.length, end: end + mark.length };
}

/** One star of two is not italic. */
function isAround(value: string, start: number, end: number, mark: string): boolean {
  if (value.slice(start - mark.length, start) !== mark || value.slice(end, end + mark.length) !== mark || start < mark.length) return false;
  return mark !== "*" || value[start - 2] !== "*" || value.slice(start - 3, start) === "***";
}

function fenced({ value, start, end }: Selection): Edit {
  const words = value.slice(start, end);
  const before = start === 0 || value[start - 1] === "\n" ? "" : "\n";
  const after = end === value.length || value[end] === "\n" ? "" : "\n";
  const text = `${before}${FENCE}\n${words}\n${FENCE}${after}`;
  const at = start + before.length + FENCE.length;
  // Without words the language is written first.
  if (words === "") return { from: start, to: end, text, start: at, end: at };
  return { from: start, to: end, text, start: at + 1, end: at + 1 + words.length };
}

function eachLine({ value, start, end }: Selection, has: RegExp, begin: (nth: number) => string): Edit {
  const from = startOfLine(value, start);
  const to = endOfLine(value, end);
  const lines = value.slice(from, to).split("\n");
  const all = lines.every((line) => line === "" || has.test(line)) && lines.some((line) => line !== "");
  const text = lines.map((line, nth) => (all ? line.replace(has, "") : has.test(line) ? line : begin(nth) + line)).join("\n");
  const whole = start !== end;
  return { from, to, text, start: whole ? from : from + text.length, end: from + text.length };
}

/** The line below a list item is one too; below an empty one the list is over. In code, the indent is kept. */
function nextLine({ value, start, end }: Selection): Edit | null {
  const from = startOfLine(value, start);
  const line = value.slice(from, start);
  const fences = value.slice(0, from).split("\n").filter((one) => one.trimStart().startsWith(FENCE)).length;
  const inCode = fences % 2 === 1;
  if (!inCode && line.trimStart().startsWith(FENCE) && start === end && !value.slice(start).includes(`\n${FENCE}`)) {
    return { from: start, to: end, text: `\n\n${FENCE}`, start: start + 1, end: start + 1 };
  }
  const begins = inCode ? /^\s+/.exec(line)?.[0] : beginningAfter(line);
  if (!begins) return null;
  const own = inCode ? "" : (BEGINNING.exec(line)?.[0] ?? "");
  if (own !== "" && line.trim() === own.trim()) return { from, to: end, text: "", start: from, end: from };
  const text = `\n${begins}`;
  return { from: start, to: end, text, start: start + text.length, end: start + text.length };
}

function beginningAfter(line: string): string | null {
  const found = BEGINNING.exec(line);
  if (found === null) return null;
  const [whole, indent = "", bullet, task, number, point] = found;
  if (bullet) return `${indent}${bullet} ${task ? "[ ] " : ""}`;
  return number ? `${indent}${Number(number) + 1}${point} ` : whole;
}

function startOfLine(value: string, at: number): number {
  return value.lastIndexOf("\n", at - 1) + 1;
}

function endOfLine(value: string, at: number): number {
  const end = value.indexOf("\n", at);
  return end === -1 ? value.length : end;
}
