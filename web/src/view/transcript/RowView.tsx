/** One row of the transcript, by its kind. Drawn again only when the row itself changed: the model keeps its identity. */

import { memo, Suspense, type ReactNode } from "react";
import type { Row, TurnWorkRow } from "../../model/rows";
import { text } from "../../text";
import type { OutboxEntry } from "../../transport/commands";
import { ErrorCard, Interrupted, TurnSummary } from "../later";
import { useMe, type Me } from "../me";
import { nameOfGroup } from "../tools/ToolGroup";
import { nameOfTool } from "../tools/ToolRow";
import { AgentText } from "./AgentText";
import { isTold, sayChanges, sayModels, sayTold } from "./eventwords";
import { Day, headingOfNote, NewSince, sayInterrupted } from "./Marks";
import { PlainRow } from "./PlainRow";
import { headingOf } from "./Thinking";
import { nameOfUser, PendingMessage, UserMessage } from "./UserMessage";

export interface PendingRow {
  kind: "pending";
  key: string;
  entry: OutboxEntry;
}

/** Before what came since the reader left. */
interface NewRow {
  kind: "new";
  key: "new";
}

/** The activity row is not drawn here: the line above the composer says it, wherever the reader is. */
export type ShownRow = Exclude<Row, { kind: "activity" }> | TurnWorkRow | PendingRow | NewRow;

type Divider = Extract<ShownRow, { kind: "day" | "new" }>;

/** Nothing to select or open. */
export function isDivider(row: ShownRow | undefined): row is Divider {
  return row?.kind === "day" || row?.kind === "new";
}

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
  if (row.kind === "new") return <NewSince />;
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

function bodyOf(row: Exclude<ShownRow, Divider>, last: boolean): ReactNode {
  switch (row.kind) {
    case "user":
      return <UserMessage row={row} />;
    case "text":
      return <AgentText row={row} last={last} />;
    case "interrupted":
      return <Interrupted row={row} />;
    case "error":
      return (
        <Suspense fallback={null}>
          <ErrorCard row={row} />
        </Suspense>
      );
    case "work":
      return <TurnSummary row={row} />;
    case "pending":
      return <PendingMessage entry={row.entry} />;
    default:
      return <PlainRow row={row} />;
  }
}

function nameOf(row: Exclude<ShownRow, Divider>, me: Me): string {
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
      return text.error.other;
    case "work":
      return text.transcript.work;
    case "pending":
      return text.message.you;
    default:
      return row satisfies never;
  }
}
