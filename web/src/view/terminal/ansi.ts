/**
 * Terminal output as coloured runs: SGR colours are kept, every other escape is dropped, a carriage return writes over its
 * line. Characters that reorder or hide are shown. Pure; it never obeys an escape, it only reads them.
 */

import { visible } from "../../model/visible";

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
  strike: boolean;
  inverse: boolean;
  /** One of the sixteen. */
  colour: number | null;
  behind: number | null;
}

const PLAIN: Pen = {
  bold: false,
  dim: false,
  italic: false,
  underline: false,
  strike: false,
  inverse: false,
  colour: null,
  behind: null,
};

// CSI sequences, OSC, DCS, APC, PM and SOS until their end, and two-character escapes.
const ESCAPE = /\u001b(?:\[([0-9;:<=>?]*)[ -/]*([@-~])|[\]PX^_][^\u0007\u001b]*(?:\u0007|\u001b\\)?|[ -/]+[0-~]|[0-Z\\`-~])/g;
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
    push(shown(source.slice(from, match.index)));
    from = match.index + match[0].length;
    // With a sign of its own it is a program's word to the terminal, not a colour.
    if (match[2] === "m" && !/[<=>?]/.test(match[1] ?? "")) pen = paint(pen, match[1] ?? "");
  }
  push(shown(source.slice(from)));
  return runs;
}

function shown(chunk: string): string {
  return visible(chunk.replace(CONTROL, ""));
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
    pen.strike && "ansi-strike",
    pen.inverse && "ansi-inverse",
    pen.colour !== null && `ansi-${pen.colour}`,
    pen.behind !== null && `ansi-on-${pen.behind}`,
  ];
  return names.filter(Boolean).join(" ");
}

function paint(pen: Pen, codes: string): Pen {
  const numbers = codes.split(/[;:]/).map((code) => Number.parseInt(code || "0", 10));
  let next = pen;
  for (let at = 0; at < numbers.length; at += 1) {
    const code = numbers[at] ?? 0;
    if (code === 38 || code === 48) {
      const colour = numbers[at + 1] === 5 ? ofPalette(numbers[at + 2] ?? 0) : nearest(numbers.slice(at + 2, at + 5));
      at += numbers[at + 1] === 5 ? 2 : 4;
      next = code === 38 ? { ...next, colour } : { ...next, behind: colour };
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
  if (code === 7) return { ...pen, inverse: true };
  if (code === 9) return { ...pen, strike: true };
  if (code === 22) return { ...pen, bold: false, dim: false };
  if (code === 23) return { ...pen, italic: false };
  if (code === 24) return { ...pen, underline: false };
  if (code === 27) return { ...pen, inverse: false };
  if (code === 29) return { ...pen, strike: false };
  if (code >= 30 && code <= 37) return { ...pen, colour: code - 30 };
  if (code === 39) return { ...pen, colour: null };
  if (code >= 90 && code <= 97) return { ...pen, colour: code - 82 };
  if (code >= 40 && code <= 47) return { ...pen, behind: code - 40 };
  if (code === 49) return { ...pen, behind: null };
  if (code >= 100 && code <= 107) return { ...pen, behind: code - 92 };
  return pen;
}

/** The 256: sixteen of ours, a cube of six steps a side, greys. */
function ofPalette(index: number): number | null {
  if (index < 16) return index;
  if (index > 231) return nearest(Array<number>(3).fill(8 + (index - 232) * 10));
  const steps = [Math.floor((index - 16) / 36), Math.floor((index - 16) / 6) % 6, (index - 16) % 6];
  return nearest(steps.map((step) => (step === 0 ? 0 : 55 + step * 40)));
}

/** The one of ours that says the same: only those are sure to be readable on both papers. */
function nearest([red = 0, green = 0, blue = 0]: readonly number[]): number | null {
  const most = Math.max(red, green, blue);
  const least = Math.min(red, green, blue);
  // Grey: faint if dark, else the ink.
  if (most - least < 40) return most < 140 ? 8 : null;
  const middle = (most + least) / 2;
  return (red > middle ? 1 : 0) + (green > middle ? 2 : 0) + (blue > middle ? 4 : 0);
}
