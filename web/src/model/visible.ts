/**
 * Text that may try to look like something else: control and bidirectional characters become visible signs. Pure.
 *
 * `visible` is for what a person judges by its looks: a command, a change, a path. `plainly` is for an agent's words, which
 * may be Arabic or hold an emoji of several parts: marks that only join or lean stay, those that reorder or hide do not.
 */

// C0 and C1 controls but for tab and newline, then marks that reorder or hide: soft hyphen, ALM, Hangul and Mongolian fillers,
// zero-width, LRM/RLM, embeddings, isolates, BOM; and the tags, a second alphabet that nobody sees.
const HIDDEN =
  /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u061c\u115f\u1160\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\u3164\ufeff\uffa0]|[\u{e0000}-\u{e007f}]/gu;

// Without the joiners and leaning marks of other scripts, without the soft hyphen, and without what ends a line: those are prose.
const DECEIVING =
  /[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f-\u009f\u115f\u1160\u180e\u200b\u202a-\u202e\u2060-\u206f\u3164\ufeff\uffa0]|[\u{e0000}-\u{e007f}]/gu;

export function visible(value: string): string {
  return value.replace(HIDDEN, sign);
}

export function plainly(value: string): string {
  return value.replace(DECEIVING, sign);
}

function sign(hidden: string): string {
  const code = hidden.codePointAt(0) ?? 0;
  // Unicode has a picture for each of the old control characters.
  if (code < 0x20) return String.fromCharCode(0x2400 + code);
  return `⟨${code.toString(16).toUpperCase().padStart(4, "0")}⟩`;
}
