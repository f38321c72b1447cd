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

/** A folder this long pushes what matters out of sight. */
const LONG_PATH_CHARS = 48;

/** A command as it is shown: a home is "~", and of a program far down only the end of its path stays. */
export function shownCommand(command: string): string {
  const near = command.replace(/(^|[\s=])(?:\/home\/[^/\s]+|\/Users\/[^/\s]+|\/root)(?=\/)/g, "$1~");
  const [program = "", ...rest] = near.split(" ");
  const parts = program.split("/");
  if (program.length <= LONG_PATH_CHARS || parts.length < 4) return near;
  return [`…/${parts.slice(-2).join("/")}`, ...rest].join(" ");
}

/** Whether this is what one types in a terminal: a program's name first, no sentence's end, nothing quoted in it. */
export function isCommand(words: string): boolean {
  return /^(?:[a-z][\w.-]*|[\w.~-]*\/[\w./-]+) \S/.test(words) && !/[.!:`“”]$/.test(words) && !/[`“”,;]/.test(words);
}
