/** What happened to files, by file: the changes of several calls to one file told as one. Pure. */

import type { FileChange } from "../protocol/events.gen";

export interface ChangedFile {
  readonly path: string;
  readonly kind: FileChange["kind"];
  readonly additions: number;
  readonly deletions: number;
  /** Each change of it that shows its lines, in order. */
  readonly parts: readonly FileChange[];
}

export function byFile(changes: readonly FileChange[]): ChangedFile[] {
  const files = new Map<string, ChangedFile>();
  for (const change of changes) {
    const known = files.get(change.path);
    files.set(change.path, {
      path: change.path,
      kind: known === undefined ? change.kind : kindOfBoth(known.kind, change.kind),
      additions: (known?.additions ?? 0) + change.additions,
      deletions: (known?.deletions ?? 0) + change.deletions,
      parts: change.diff === null && change.blob === null ? (known?.parts ?? []) : [...(known?.parts ?? []), change],
    });
  }
  return [...files.values()];
}

/** A file that was made and then changed was made. */
export function kindOfBoth(before: FileChange["kind"], after: FileChange["kind"]): FileChange["kind"] {
  if (after === "deleted") return "deleted";
  return before === "created" || before === "renamed" ? before : after;
}

export function total(files: readonly { additions: number; deletions: number }[]): { added: number; removed: number } {
  return {
    added: files.reduce((sum, file) => sum + file.additions, 0),
    removed: files.reduce((sum, file) => sum + file.deletions, 0),
  };
}
