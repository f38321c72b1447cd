/**
 * The files that trusting a folder would switch on, as lines to be shown: all of their text, hidden characters as signs. Pure.
 *
 * The terminal's `palaver/client/settings_review.py` shows the same through Python's `approval_text`, as this does through its twin.
 * No file is left out; one that is no text is named with its size and its hash.
 */

import { bytes } from "../measures";
import { trust } from "../text.trust";
import { approvalLines, type Shown } from "./approvaltext";

export interface ReviewFile {
  path: string;
  size_bytes: number;
  /** Empty: it cannot be read. */
  sha256: string;
  /** Null: no text, or too long. */
  text: string | null;
  link: string | null;
}

export function reviewLines(files: readonly ReviewFile[]): Shown[] {
  return files.flatMap((file) => approvalLines("", { [nameOf(file)]: textOf(file) }));
}

function nameOf({ path, link }: ReviewFile): string {
  return link === null ? path : `${path} → ${link}`;
}

/** Text ends with a line's end, so that it stands beneath the name of its file. */
function textOf({ text, sha256, size_bytes }: ReviewFile): string {
  if (text === null) return sha256 === "" ? trust.unreadable : trust.hidden(bytes(size_bytes), sha256);
  if (text.trim() === "") return trust.blank(bytes(size_bytes));
  return text.endsWith("\n") ? text : `${text}\n`;
}

/** Under which this browser remembers that exactly these settings are to stay off. */
export function keptOffKey(project: string, program: string): string {
  return `palaver.trust.off.${program}.${project}`;
}
