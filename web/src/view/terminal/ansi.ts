/**
 * Terminal output as coloured runs: SGR colours are kept, every other escape is dropped, a carriage return writes over its
 * line. Pure; it never obeys an escape, it only reads them.
 */

export interface Run {
  text: string;
  /** Class names from style/terminal.css. */
  style: string;
}

interface Pen {
  bold: boolean;
  dim: boolean;
  italic: boolean;
  underline: boolean;
  colour: number | null;
}

const PLAIN: Pen = { bold: false, dim: false, italic: false, underline: false, colour: null };

// CSI sequences, OSC until its end, and two-character escapes.
const ESCAPE = /\u001b(?:\[([0-9;:?]*)[ -/]*([@-~])|\][^\u0007\u001b]*(?:\u0007|\u001b\\)?|[@-Z\\^_=>])/g;
// What is left of controls once escapes are gone, newline and tab excepted.
const CONTROL = /[\u0000-\u0008\u000b-\u001f\u007f]/g;

export function readAnsi(output: string): Run[] {
  const runs: Run[] = [];
  let pen = PLAIN;
  let from = 0;
  const push = (chunk: string): void => {
    if (chunk === "") return;
    const style = styleOf(pen);
    const last = runs.at(-1);
    if (last?.style === style) last.text += chunk;
    else runs.push({ text: chunk, style });
  };
  const source = overwritten(output);
  for (const match of source.matchAll(ESCAPE)) {
    push(source.slice(from, match.index).replace(CONTROL, ""));
    from = match.index + match[0].length;
    if (match[2] === "m") pen = paint(pen, match[1] ?? "");
  }
  push(source.slice(from).replace(CONTROL, ""));
  return runs;
}

/** A progress bar writes its line again and again: the last writing is what a person would see. */
function overwritten(output: string): string {
  if (!output.includes("\r")) return output;
  return output
    .replaceAll("\r\n", "\n")
    .split("\n")
    .map((line) => {
      const parts = line.split("\r");
      return parts.findLast((part) => part !== "") ?? "";
    })
    .join("\n");
}

function styleOf(pen: Pen): string {
  const names = [
    pen.bold && "ansi-bold",
    pen.dim && "ansi-dim",
    pen.italic && "ansi-italic",
    pen.underline && "ansi-underline",
    pen.colour !== null && `ansi-${pen.colour}`,
  ];
  return names.filter(Boolean).join(" ");
}

function paint(pen: Pen, codes: string): Pen {
  const numbers = codes.split(/[;:]/).map((code) => Number.parseInt(code || "0", 10));
  let next = pen;
  for (let at = 0; at < numbers.length; at += 1) {
    const code = numbers[at] ?? 0;
    if (code === 38 || code === 48) {
      // 256 colours and true colours: the first sixteen are ours, the rest stay plain.
      const palette = numbers[at + 1] === 5 ? numbers[at + 2] : undefined;
      at += numbers[at + 1] === 5 ? 2 : 4;
      if (code === 38) next = { ...next, colour: palette !== undefined && palette < 16 ? palette : null };
    } else next = paintOne(next, code);
  }
  return next;
}

function paintOne(pen: Pen, code: number): Pen {
  if (code === 0) return PLAIN;
  if (code === 1) return { ...pen, bold: true };
  if (code === 2) return { ...pen, dim: true };
  if (code === 3) return { ...pen, italic: true };
  if (code === 4) return { ...pen, underline: true };
  if (code === 22) return { ...pen, bold: false, dim: false };
  if (code === 23) return { ...pen, italic: false };
  if (code === 24) return { ...pen, underline: false };
  if (code >= 30 && code <= 37) return { ...pen, colour: code - 30 };
  if (code === 39) return { ...pen, colour: null };
  if (code >= 90 && code <= 97) return { ...pen, colour: code - 82 };
  return pen;
}
