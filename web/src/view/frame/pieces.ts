/** The parts of a sentence that programmers quote, told from the others. Pure. */

export interface Piece {
  text: string;
  code: boolean;
}

/** Backticks mark code; one without its pair is a backtick. */
export function piecesOf(sentence: string): Piece[] {
  const parts = sentence.split(/`([^`\n]+)`/);
  return parts.map((text, index) => ({ text, code: index % 2 === 1 })).filter(({ text }) => text !== "");
}

/** Whether this is what one types in a terminal: a program's name first, no sentence's end, nothing quoted in it. */
export function isCommand(words: string): boolean {
  return /^(?:[a-z][\w.-]*|[\w.~-]*\/[\w./-]+) \S/.test(words) && !/[.!:`“”]$/.test(words) && !/[`“”,;]/.test(words);
}
