/** What stands between messages: days as lines, interruptions and notes by their names. */

import type { DayRow, InterruptedRow, NoteRow } from "../../model/rows";
import { clock, day } from "../../measures";
import { text } from "../../text";
import { useMinutes } from "../controls/now";
import { faceOf, isAnothers, isHere, type Me } from "../me";

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
