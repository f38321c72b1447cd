/** A few words that go with an answer. */

import { useRef, useState } from "react";
import { asking } from "../../text.asking";
import { useAutoGrow } from "../composer/grow";

interface NoteFormProps {
  label: string;
  submit: string;
  onSubmit: (note: string) => void;
  onCancel: () => void;
}

export function NoteForm({ label, submit, onSubmit, onCancel }: NoteFormProps) {
  const [note, setNote] = useState("");
  const field = useRef<HTMLTextAreaElement>(null);
  useAutoGrow(field, note);
  const send = (): void => {
    if (note.trim() !== "") onSubmit(note.trim());
  };
  return (
    <div className="note-form">
      <textarea
        ref={field}
        className="field"
        rows={1}
        aria-label={label}
        placeholder={label}
        autoFocus
        value={note}
        onChange={(event) => setNote(event.target.value)}
        onKeyDown={(event) => {
          if (event.nativeEvent.isComposing) return;
          if (event.key === "Enter" && !event.shiftKey) {
            event.preventDefault();
            send();
          } else if (event.key === "Escape") {
            event.preventDefault();
            event.stopPropagation();
            onCancel();
          }
        }}
      />
      <div className="request-bar">
        <button type="button" className="button primary" disabled={note.trim() === ""} onClick={send}>
          {submit}
        </button>
        <button type="button" className="button quiet" onClick={onCancel}>
          {asking.approval.cancel}
        </button>
      </div>
    </div>
  );
}
