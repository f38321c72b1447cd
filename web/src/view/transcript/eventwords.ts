/** What the engine did between messages, in words: the names of the lines that Events.tsx draws. */

import { byFile } from "../../model/changes";
import type { ChangesRow, NoteRow, SwitchRow } from "../../model/rows";
import { text } from "../../text";
import { visible } from "../controls/visible";

export function sayModels({ switch: { to_model, from_model } }: SwitchRow): string {
  return visible(text.modelSwitch.line(to_model, from_model));
}

export function sayChanges(row: ChangesRow): string {
  return text.changes.summary(byFile(row.changes).length);
}

/** Whether the agent was told, and the reader sees what about: the end of a background process, or what became of a plan. */
export function isTold(row: NoteRow): boolean {
  return row.role === "event" && row.message.hidden;
}

export function sayTold(row: NoteRow) {
  const plain = { isCode: false, result: "", bad: false } as const;
  // The words are for the agent; what the person said with it stands at their end.
  const remark = /The person said: ([\s\S]*)$/.exec(row.text)?.[1] ?? "";
  switch (row.eventKind) {
    case "process_completed":
      return sayProcess(row);
    case "plan_approved":
      return { icon: "check", heading: text.message.planApproved, object: remark, ...plain } as const;
    case "plan_revised":
      return { icon: "edit", heading: text.message.planRevised, object: remark, ...plain } as const;
    default:
      return { icon: "close", heading: text.message.planRejected, object: remark, ...plain } as const;
  }
}

function sayProcess({ message, text: words }: NoteRow) {
  const data = (message.data ?? {}) as { command?: string; exit_code?: number | null; end?: string };
  const code = data.exit_code ?? null;
  const stopped = data.end === "stopped";
  return {
    icon: "terminal",
    heading: stopped ? text.processes.wasStopped : text.processes.ended,
    object: visible(data.command ?? words.split("\n", 1)[0] ?? ""),
    isCode: true,
    result: stopped ? "" : data.end === "restart" ? text.processes.restart : text.processes.exited(code),
    bad: code !== null && code !== 0,
  } as const;
}
