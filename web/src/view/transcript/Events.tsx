/** What the engine did between messages, each in a quiet line: another model, a cut attempt, less context, changed
 * files. Loaded with the first of them. */

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
import { sayModels, sayTold } from "./eventwords";

export type EventKindRow = SwitchRow | AttemptRow | CompressedRow | ChangesRow | NoteRow;

export default function EventRow({ row }: { row: EventKindRow }) {
  switch (row.kind) {
    case "switch":
      return <ModelSwitch row={row} />;
    case "attempt":
      return <Attempt row={row} />;
    case "compressed":
      return <Compressed row={row} />;
    case "changes":
      return <TurnChanges row={row} />;
    case "note":
      return <Told row={row} />;
  }
}

function ModelSwitch({ row }: { row: SwitchRow }) {
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

function Attempt({ row }: { row: AttemptRow }) {
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

function Compressed({ row }: { row: CompressedRow }) {
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

/** A longer list of files is opened on demand. */
const FEW_FILES = 8;

function TurnChanges({ row }: { row: ChangesRow }) {
  const files = byFile(row.changes);
  const [open, setOpen] = useDisclosed(row.key, files.length <= FEW_FILES);
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
          <Changes place={row.key} changes={row.changes} folded />
        </Suspense>
      )}
    </div>
  );
}

/** The end of a background process, or what became of a plan: the agent was told, and so is the reader. */
function Told({ row }: { row: NoteRow }) {
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
