/**
 * What a half-written word may become: a file of the project after `@`, a command after a `/` that begins the message. Pure.
 *
 * Called by the list above the message box (Completion.tsx). Says nothing of how it looks or where the files come from.
 */

import type { TreeEntry } from "../../protocol/agents";
import type { Edit } from "./format";

export interface Asked {
  readonly kind: "file" | "command";
  /** Where its sign stands. */
  readonly from: number;
  /** What was written after the sign. */
  readonly query: string;
}

export interface FoundFile {
  /** A folder's ends in a slash. */
  readonly path: string;
  readonly folder: boolean;
}

/** More is not read; typing narrows it down. */
export const FILES_SHOWN = 30;

const FILE = /(?:^|[\s([{])@(?:"([^"\n]*)|([^\s"]*))$/;
const COMMAND = /^\/([^\n/]*)$/;

/** What is being asked for at the caret, if anything is. A command has to be all that stands there. */
export function askedAt(value: string, caret: number): Asked | null {
  const command = caret === value.length ? COMMAND.exec(value) : null;
  if (command !== null) return { kind: "command", from: 0, query: command[1] ?? "" };
  const before = value.slice(0, caret);
  const file = FILE.exec(before);
  return file === null ? null : { kind: "file", from: before.lastIndexOf("@"), query: file[1] ?? file[2] ?? "" };
}

/** All that can be named of a tree, the nearest first. What leads nowhere or out of the project cannot. */
export function filesOf(entries: readonly TreeEntry[]): FoundFile[] {
  const found: FoundFile[] = [];
  for (let level = entries; level.length > 0; level = level.flatMap((entry) => entry.entries ?? [])) {
    for (const { path, kind, leads } of level) {
      const folder = kind === "folder" || leads === "folder";
      if (folder || kind === "file" || leads === "file") found.push({ path: folder ? `${path}/` : path, folder });
    }
  }
  return found;
}

/** "src/pa" is looked for in "src", as far as that is a folder of these. */
export function folderIn(query: string, files: readonly FoundFile[]): string | null {
  const folder = query.slice(0, query.lastIndexOf("/") + 1);
  return folder !== "" && files.some(({ path }) => path === folder) ? folder.slice(0, -1) : null;
}

/** Those that are like what was written, the likeliest first; none once it is written out. */
export function filesLike(query: string, files: readonly FoundFile[]): FoundFile[] {
  const wanted = query.toLowerCase();
  // Hidden ones are meant by whoever writes the dot.
  const withHidden = /(?:^|\/)\./.test(query);
  const likely: { file: FoundFile; rank: number }[] = [];
  for (const file of files) {
    if (file.path === query && !file.folder) return [];
    if (file.path === query || (!withHidden && /(?:^|\/)\./.test(file.path))) continue;
    const rank = rankOf(wanted, file.path.toLowerCase());
    if (rank !== null) likely.push({ file, rank });
  }
  // Among the like the shorter is nearer to what was written; without a word the tree's own order holds.
  // Signs in order are a last resort: beside what holds the very word they are noise.
  const best = Math.min(...likely.map(({ rank }) => rank), SCATTERED);
  const order = wanted === "" ? () => 0 : (a: FoundFile, b: FoundFile) => a.path.length - b.path.length;
  return likely
    .filter(({ rank }) => best === SCATTERED || rank < SCATTERED)
    .toSorted((a, b) => a.rank - b.rank || order(a.file, b.file))
    .slice(0, FILES_SHOWN)
    .map(({ file }) => file);
}

/** From here on only the signs are there, in order. */
const SCATTERED = 5;

/** Lower is likelier; null: not like it at all. */
function rankOf(wanted: string, path: string): number | null {
  const name = path.slice(path.lastIndexOf("/", path.length - 2) + 1);
  if (wanted === "") return 0;
  if (path.startsWith(wanted) && wanted.includes("/")) return 0;
  if (name.startsWith(wanted)) return 1;
  if (path.includes(`/${wanted}`) || path.startsWith(wanted)) return 2;
  if (name.includes(wanted)) return 3;
  if (path.includes(wanted)) return 4;
  if (isWithin(wanted, name)) return SCATTERED;
  return isWithin(wanted, path) ? SCATTERED + 1 : null;
}

/** All signs of it, in order, with others between them. */
function isWithin(wanted: string, path: string): boolean {
  let at = -1;
  for (const sign of wanted) {
    at = path.indexOf(sign, at + 1);
    if (at === -1) return false;
  }
  return true;
}

/** Each word written begins a word of the name. Those that begin with all of it come first. */
export function commandsLike<Command extends { readonly name: string }>(query: string, commands: readonly Command[]): Command[] {
  const words = query.toLowerCase().split(/\s+/).filter(Boolean);
  const like = commands.filter(({ name }) => {
    const known = name.toLowerCase().split(/[\s:]+/);
    return words.every((word) => known.some((one) => one.startsWith(word)));
  });
  const begins = ({ name }: Command): number => Number(!name.toLowerCase().startsWith(words.join(" ")));
  return words.length === 0 ? like : like.toSorted((a, b) => begins(a) - begins(b));
}

/** Puts a file in the place of what was written. A name with blanks is quoted; after a folder one may go on. */
export function withFile({ from }: Asked, caret: number, { path, folder }: FoundFile): Edit {
  const blank = /\s/.test(path);
  const text = `@${blank ? '"' : ""}${path}${folder ? "" : blank ? '" ' : " "}`;
  return { from, to: caret, text, start: from + text.length, end: from + text.length };
}
