/**
 * Text that may try to look like something else: hidden and misleading characters become visible signs. Pure.
 *
 * `visible` is for what a person judges by its looks: a command, a change, a path. `plainly` is for an agent's words, which
 * may be Arabic or hold an emoji of several parts: marks that only join or lean stay, those that reorder or hide do not.
 */

// The one definition, for Python too (scripts/hidden_characters.mjs). By the properties of Unicode: controls, formats, default
// ignorables, private characters and what is none, lone surrogates, every space but the plain one. By number what is drawn as
// nothing: the Khitan filler, the braille, hieroglyphic and musical blanks.
const HIDDEN =
  /(?![ \n\t])[\p{DI}\p{Bidi_C}\p{White_Space}\p{Cc}\p{Cf}\p{NChar}\p{Co}\p{Cs}\u2800\u{13441}\u{13442}\u{16fe4}\u{1d159}]/gu;

// More marks on one letter than any script writes cover the lines around it.
const PILED = /([\p{Mn}\p{Me}]{4})([\p{Mn}\p{Me}]+)/gu;

// Without the joiners and leaning marks of other scripts, without the soft hyphen, and without what ends a line: those are prose.
const DECEIVING =
  /[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f-\u009f\u115f\u1160\u180e\u200b\u202a-\u202e\u2060-\u206f\u3164\ufeff\uffa0]|[\u{e0000}-\u{e007f}]/gu;

export function visible(value: string): string {
  return value.replace(HIDDEN, sign).replace(PILED, (_, few: string, more: string) => few + [...more].map(sign).join(""));
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
