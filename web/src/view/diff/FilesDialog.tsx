/** Every file that changed in a conversation, with its changes as far as the calls that made them are at hand. */

import { useMemo } from "react";
import { byFile, total } from "../../model/changes";
import { KEEP_LATEST } from "../../model/work";
import type { FileChange, State } from "../../protocol/events.gen";
import { later } from "../../text.later";
import { Dialog } from "../controls/Dialog";
import { Icon } from "../controls/Icon";
import { usePicked } from "../store";
import { Changes, Stat } from "./Changes";

export default function FilesDialog({ id, onClose }: { id: string; onClose: () => void }) {
  const files = usePicked(id, ({ state }) => state.files);
  const messages = usePicked(id, ({ state }) => state.messages);
  const changes = useMemo(() => changesOf(files ?? [], messages ?? []), [files, messages]);
  const { added, removed } = total(changes);
  return (
    <Dialog label={later.changes.heading} className="sheet wide" onClose={onClose}>
      <div className="sheet-head">
        <h2>{later.meter.files(files?.length ?? 0)}</h2>
        <Stat added={added} removed={removed} />
        <button type="button" className="icon-button" aria-label={later.changes.close} onClick={onClose}>
          <Icon name="close" />
        </button>
      </div>
      <div className="sheet-body">
        {files?.length === KEEP_LATEST && <p className="hint">{later.changes.latest(KEEP_LATEST)}</p>}
        {changes.length === 0 ? <p className="hint">{later.changes.empty}</p> : <Changes place={`files:${id}`} changes={changes} roomy />}
      </div>
    </Dialog>
  );
}

/** The view's list has no lines of what calls did: those are with the calls. */
function changesOf(files: State["files"], messages: State["messages"]): FileChange[] {
  const byCalls = messages.flatMap(({ blocks }) => blocks.flatMap((block) => (block.type === "tool" ? block.changes : [])));
  const shown = new Map(byFile(byCalls).map((file) => [file.path, file]));
  return files.flatMap((file) => {
    const parts = shown.get(file.path)?.parts ?? [];
    if (parts.length === 0) return [file];
    const [first, ...rest] = parts;
    return first ? [{ ...first, kind: file.kind }, ...rest] : [];
  });
}
