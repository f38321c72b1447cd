/** What the engine did between messages, each in a quiet line: another model, a cut attempt, less context, changed files. */

import { Suspense } from "react";
import { savedPercent } from "../../model/compressed";
import { byFile, total } from "../../model/changes";
import type { AttemptRow, ChangesRow, CompressedRow, NoteRow, SwitchRow } from "../../model/rows";
import { said } from "../../sentences";
import { text } from "../../text";
import { Icon } from "../controls/Icon";
import { plainly, visible } from "../controls/visible";
import { Changes, CompressedBody, Stat } from "../later";
import { useDisclosed } from "../store";

export function ModelSwitch({ row }: { row: SwitchRow }) {
  const { reason } = row.switch;
  return (
    <p className="event-line">
      <Icon name="retry" />
      <span>
        {sayModels(row)}
        {reason && <span className="event-more">: {visible(said(text.modelSwitch.because(reason)))}</span>}
      </span>
    </p>
  );
}

export function sayModels({ switch: { to_model, from_model } }: SwitchRow): string {
  return visible(text.modelSwitch.line(to_model, from_model));
}

export function Attempt({ row }: { row: AttemptRow }) {
  const [open, setOpen] = useDisclosed(row.key);
  const empty = row.text === "";
  return (
    <div className="tool">
      <button
        type="button"
        className="tool-line"
        aria-expanded={empty ? undefined : open}
        disabled={empty}
        onClick={() => setOpen(!open)}
      >
        <span className="tool-icon">
          <Icon name="cut" />
        </span>
        <span className="tool-object">{text.message.attempt}</span>
        {!empty && (
          <span className="tool-chevron">
            <Icon name="chevron" />
          </span>
        )}
      </button>
      {open && (
        <div className="tool-body">
          <p className="thinking-text">{plainly(row.text)}</p>
        </div>
      )}
    </div>
  );
}

export function Compressed({ row }: { row: CompressedRow }) {
  const [open, setOpen] = useDisclosed(row.key);
  const { range } = row;
  return (
    <div className={open ? "compressed is-open" : "compressed"}>
      <button type="button" className="compressed-line" aria-expanded={open} onClick={() => setOpen(!open)}>
        <span className="compressed-words">
          <Icon name="compress" />
          {text.compressed.divider(savedPercent(range), text.compressed.strength[range.strength])}
          <span className="tool-chevron">
            <Icon name="chevron" />
          </span>
        </span>
      </button>
      {open && (
        <Suspense fallback={null}>
          <CompressedBody range={range} />
        </Suspense>
      )}
    </div>
  );
}

export function TurnChanges({ row }: { row: ChangesRow }) {
  const [open, setOpen] = useDisclosed(row.key);
  const files = byFile(row.changes);
  const { added, removed } = total(files);
  return (
    <div className="tool turn-changes">
      <button type="button" className="tool-line" aria-expanded={open} onClick={() => setOpen(!open)}>
        <span className="tool-icon">
          <Icon name="diff" />
        </span>
        <span className="tool-verb">{text.changes.summary(files.length)}</span>
        <Suspense fallback={null}>
          <Stat added={added} removed={removed} />
        </Suspense>
        <span className="tool-chevron">
          <Icon name="chevron" />
        </span>
      </button>
      {open && (
        <Suspense fallback={null}>
          <Changes place={row.key} changes={row.changes} />
        </Suspense>
      )}
    </div>
  );
}

export function sayChanges(row: ChangesRow): string {
  return text.changes.summary(byFile(row.changes).length);
}

/** The end of a background process, or what became of a plan: the agent was told, and so is the reader. */
export function Told({ row }: { row: NoteRow }) {
  const { icon, heading, object, isCode, result, bad } = sayTold(row);
  return (
    <p className={bad ? "event-line is-trouble" : "event-line"}>
      <Icon name={icon} />
      <span className="event-heading">{heading}</span>
      {object && <span className={isCode ? "event-object mono" : "event-object"}>{object}</span>}
      {result && <span className="event-result tabular">{result}</span>}
    </p>
  );
}

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
