/** The rows of interruptions, and of notes by nobody in particular. */

import type { InterruptedRow, NoteRow } from "../../model/rows";
import { exactTime } from "../../measures";
import { text } from "../../text";
import { useScope } from "../conversation/scope";
import { Icon, type IconName } from "../controls/Icon";
import { plainly } from "../controls/visible";
import { useMe } from "../me";
import { useDisclosed, usePicked, useStore } from "../store";
import { headingOfNote, sayInterrupted } from "./Marks";

export function Interrupted({ row }: { row: InterruptedRow }) {
  const store = useStore();
  const me = useMe();
  const { id, setEditing } = useScope();
  const busy = usePicked(id, ({ state }) => state.turn !== null) ?? false;

  const editLast = (): void => {
    const open = store.getSnapshot().open.get(id);
    const last = open?.rows.findLast((known) => known.kind === "user");
    if (last?.kind !== "user") return;
    setEditing({ messageId: last.message.id, text: last.text });
    store.select(id, last.key);
  };

  return (
    <div className="mark-row">
      <Icon name="cut" />
      <span className="mark-words" title={exactTime(row.ts)}>
        {sayInterrupted(row, me)}
      </span>
      {row.last && !busy && (
        <span className="mark-actions">
          <button
            type="button"
            className="button small"
            onClick={() => store.send(id, text.interrupted.resumeMessage)}
          >
            {text.interrupted.resume}
          </button>
          <button type="button" className="button quiet small" onClick={editLast}>
            {text.interrupted.editAndResend}
          </button>
        </span>
      )}
    </div>
  );
}

const NOTE_ICONS: Record<NoteRow["role"], IconName> = { system: "shield", event: "bell", plan: "plan", summary: "list" };

export function Note({ row }: { row: NoteRow }) {
  const [open, setOpen] = useDisclosed(row.key);
  const long = row.text.length > 120 || row.text.includes("\n");
  return (
    <div className="tool note">
      <button
        type="button"
        className="tool-line"
        aria-expanded={long ? open : undefined}
        disabled={!long}
        onClick={() => setOpen(!open)}
      >
        <span className="tool-icon">
          <Icon name={NOTE_ICONS[row.role]} />
        </span>
        <span className="tool-verb">{headingOfNote(row)}</span>
        <span className="tool-object">{plainly(row.text.split("\n", 1)[0] ?? "")}</span>
        {long && (
          <span className="tool-chevron">
            <Icon name="chevron" />
          </span>
        )}
      </button>
      {long && open && (
        <div className="tool-body">
          <p className="thinking-text">{plainly(row.text)}</p>
        </div>
      )}
    </div>
  );
}
