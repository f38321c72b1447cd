/**
 * Rows that look the same wherever a transcript is shown, in its own place or inside another: what an agent did, not what can be
 * done about it. RowView and Peek draw the others, each in its way.
 */

import type { ReactNode } from "react";
import type { Row } from "../../model/rows";
import { EventRow } from "../later";
import { ToolGroup } from "../tools/ToolGroup";
import { ToolRow } from "../tools/ToolRow";
import { NoteView } from "./NoteView";
import { Thinking } from "./Thinking";
import { Picture } from "./UserMessage";

/** The kinds that each place draws itself. */
type OwnKind = "user" | "text" | "interrupted" | "error" | "day" | "activity";

export type SharedRow = Exclude<Row, { kind: OwnKind }>;

export function PlainRow({ row }: { row: SharedRow }): ReactNode {
  switch (row.kind) {
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
    case "attempt":
    case "compressed":
    case "changes":
      return <EventRow row={row} />;
    default:
      return row satisfies never;
  }
}
