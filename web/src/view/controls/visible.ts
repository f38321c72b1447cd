/**
 * Text that may try to look like something else: control and bidirectional characters become visible signs. Used wherever
 * a person judges a command or a change by its looks.
 */

// C0 and C1 controls but for tab and newline, then marks that reorder or hide: ALM, zero-width, LRM/RLM, embeddings, isolates, BOM.
const HIDDEN = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u061c\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff]/g;

export function visible(value: string): string {
  return value.replace(HIDDEN, (sign) => {
    const code = sign.charCodeAt(0);
    // Unicode has a picture for each of the old control characters.
    if (code < 0x20) return String.fromCharCode(0x2400 + code);
    return `⟨${code.toString(16).toUpperCase().padStart(4, "0")}⟩`;
  });
}
