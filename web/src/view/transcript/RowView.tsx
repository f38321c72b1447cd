/** One row of the transcript, by its kind. Drawn again only when the row itself changed: the model keeps its identity. */

import { memo, type ReactNode } from "react";
import type { Row } from "../../model/rows";
import { text } from "../../text";
import type { OutboxEntry } from "../../transport/commands";
import { useMe, type Me } from "../me";
import { nameOfGroup, ToolGroup } from "../tools/ToolGroup";
import { nameOfTool, ToolRow } from "../tools/ToolRow";
import { AgentText } from "./AgentText";
import { Attempt, Compressed, isTold, ModelSwitch, sayChanges, sayModels, sayTold, TurnChanges } from "./Events";
import { Day, ErrorCard, headingOfNote, Interrupted, sayInterrupted } from "./Marks";
import { NoteView } from "./NoteView";
import { headingOf, Thinking } from "./Thinking";
import { nameOfUser, PendingMessage, Picture, UserMessage } from "./UserMessage";

export interface PendingRow {
  kind: "pending";
  key: string;
  entry: OutboxEntry;
}

/** The activity row is not drawn here: the line above the composer says it, wherever the reader is. */
export type ShownRow = Exclude<Row, { kind: "activity" }> | PendingRow;

export interface RowViewProps {
  row: ShownRow;
  /** Named when this row begins the words of someone else than before. */
  speaker: string | null;
  selected: boolean;
  /** Nothing follows it. */
  last: boolean;
}

export const RowView = memo(function RowView({ row, speaker, selected, last }: RowViewProps) {
  const me = useMe();
  if (row.kind === "day") return <Day row={row} />;
  return (
    <article
      className={selected ? `row row-${row.kind} selected` : `row row-${row.kind}`}
      data-key={row.key}
      tabIndex={-1}
      aria-label={nameOf(row, me)}
    >
      {speaker && <p className="speaker">{speaker}</p>}
      {bodyOf(row, last)}
    </article>
  );
});

function bodyOf(row: Exclude<ShownRow, { kind: "day" }>, last: boolean): ReactNode {
  switch (row.kind) {
    case "user":
      return <UserMessage row={row} />;
    case "text":
      return <AgentText row={row} last={last} />;
    case "thinking":
      return <Thinking row={row} />;
    case "image":
      return <Picture url={row.block.url} />;
    case "tool":
      return <ToolRow place={row.key} block={row.block} />;
    case "tool_group":
      return <ToolGroup row={row} />;
    case "note":
      return <NoteView row={row} />;
    case "switch":
      return <ModelSwitch row={row} />;
    case "attempt":
      return <Attempt row={row} />;
    case "compressed":
      return <Compressed row={row} />;
    case "changes":
      return <TurnChanges row={row} />;
    case "interrupted":
      return <Interrupted row={row} />;
    case "error":
      return <ErrorCard row={row} />;
    case "pending":
      return <PendingMessage entry={row.entry} />;
    default:
      return row satisfies never;
  }
}

function nameOf(row: Exclude<ShownRow, { kind: "day" }>, me: Me): string {
  switch (row.kind) {
    case "user":
      return nameOfUser(row, me);
    case "text":
    case "image":
      return text.message.agent(row.agent ?? "");
    case "thinking":
      return headingOf(row);
    case "tool":
      return nameOfTool(row.block);
    case "tool_group":
      return nameOfGroup(row);
    case "note":
      return isTold(row) ? sayTold(row).heading : headingOfNote(row);
    case "switch":
      return sayModels(row);
    case "attempt":
      return text.message.attempt;
    case "compressed":
      return text.compressed.name;
    case "changes":
      return sayChanges(row);
    case "interrupted":
      return sayInterrupted(row, me);
    case "error":
      return text.error.heading[row.error.code] ?? text.error.other;
    case "pending":
      return text.message.you;
    default:
      return row satisfies never;
  }
}
