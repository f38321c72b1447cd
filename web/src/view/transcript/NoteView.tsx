/** A message by nobody in particular, in the form that fits its kind. */

import { Suspense } from "react";
import type { NoteRow } from "../../model/rows";
import { Callback, EventRow, Note } from "../later";
import { isTold } from "./eventwords";

export function NoteView({ row }: { row: NoteRow }) {
  if (isTold(row)) return <EventRow row={row} />;
  const note = <Note row={row} />;
  if (row.eventKind !== "agent_callback") return note;
  return (
    <Suspense fallback={note}>
      <Callback row={row} />
    </Suspense>
  );
}
