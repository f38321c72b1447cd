/** What stands between messages: days, interruptions, notes by nobody in particular. */

import type { DayRow, InterruptedRow, NoteRow } from "../../model/rows";
import { clock, day, exactTime } from "../../measures";
import { text } from "../../text";
import { useScope } from "../conversation/scope";
import { Icon, type IconName } from "../controls/Icon";
import { useMinutes } from "../controls/now";
import { plainly } from "../controls/visible";
import { faceOf, isAnothers, isHere, useMe, type Me } from "../me";
import { useDisclosed, usePicked, useStore } from "../store";

export function Day({ row }: { row: DayRow }) {
  const now = useMinutes();
  return (
    <div className="day">
      <span>{day(row.day, now)}</span>
    </div>
  );
}

export function NewSince() {
  return (
    <div className="day is-new">
      <span>{text.transcript.newSince}</span>
    </div>
  );
}

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

export function sayInterrupted(row: InterruptedRow, me: Me): string {
  if (row.stopped === null) return text.interrupted.heading;
  const reason = row.stopped === "user" ? sayWhoStopped(row, me) : text.interrupted.reasons[row.stopped];
  return text.interrupted.at(reason, clock(row.ts));
}

function sayWhoStopped({ turn }: InterruptedRow, me: Me): string {
  const by = turn?.by;
  if (!by || isHere(by, me)) return text.interrupted.reasons.user;
  if (isAnothers(by, me)) return text.interrupted.by(by.user ?? "");
  const face = faceOf(by);
  return face === null ? text.interrupted.reasons.other : text.message.via(face);
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

export function headingOfNote(row: NoteRow): string {
  switch (row.role) {
    case "system":
      return text.message.system;
    case "summary":
      return text.message.summary;
    case "plan":
      return text.message.plan;
    case "event":
      return row.eventKind === "agent_callback" ? text.message.answer : sentence(text.message.event(row.eventKind ?? "event"));
  }
}

function sentence(words: string): string {
  return words.charAt(0).toUpperCase() + words.slice(1);
}
