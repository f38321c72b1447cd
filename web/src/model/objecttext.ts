/** Whether a text may be one JSON object: cheap enough to ask of every text before the parser is loaded. */

/** A longer text is no answer for a widget, and parsing it would hold up the page. As in `core/text/special_blocks.py`. */
const LIMIT_CHARS = 262_144;

export function isObjectText(text: string): boolean {
  return text.length <= LIMIT_CHARS && /^[ \t\r\n]*\{/.test(text) && /\}[ \t\r\n]*$/.test(text.slice(-200));
}
