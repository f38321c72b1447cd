/** A program and its arguments as one line, and back, the way a terminal reads them. Pure. */

/** Splits at blanks; quotes hold words together, a backslash takes the next character as it is. Null: a quote has no end. */
export function wordsOf(line: string): string[] | null {
  const words: string[] = [];
  let word = "";
  let begun = false;
  let quote = "";
  for (let at = 0; at < line.length; at++) {
    const char = line.charAt(at);
    if (char === "\\" && quote !== "'" && at + 1 < line.length) {
      word += line.charAt(++at);
      begun = true;
    } else if (quote !== "") {
      if (char === quote) quote = "";
      else word += char;
    } else if (char === "'" || char === '"') {
      quote = char;
      begun = true;
    } else if (/\s/.test(char)) {
      if (begun) words.push(word);
      word = "";
      begun = false;
    } else {
      word += char;
      begun = true;
    }
  }
  if (quote !== "") return null;
  return begun ? [...words, word] : words;
}

export function lineOf(words: readonly string[]): string {
  return words.map((word) => (/^[\w@%+=:,./~-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`)).join(" ");
}

/** Names with commas, blanks or line ends between them. */
export function namesOf(text: string): string[] {
  return [...new Set(text.split(/[\s,]+/).filter(Boolean))];
}
