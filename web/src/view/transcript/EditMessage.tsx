/** A message of one's own, being changed in its place. Sending it drops what follows, and the agent answers again.
 *
 * Of a very long one the page holds the beginning alone: all of it is fetched before a word of it can be changed.
 */

import { useEffect, useRef } from "react";
import type { UserRow } from "../../model/rows";
import type { Part } from "../../protocol/events.gen";
import { later } from "../../text.later";
import { useAutoGrow } from "../composer/grow";
import { useScope } from "../conversation/scope";
import { useBlobText } from "../controls/blobText";
import { useStore } from "../store";
import { Images } from "./UserMessage";

export default function EditMessage({ row }: { row: UserRow }) {
  const store = useStore();
  const { id, editing, setEditing } = useScope();
  const field = useRef<HTMLTextAreaElement>(null);
  const value = editing?.text ?? "";
  useAutoGrow(field, value);
  const kept = row.message.blocks.find((block) => block.type === "text" && block.blob !== null);
  const blob = kept?.type === "text" ? kept.blob : null;
  const { text: whole, failed } = useBlobText(blob?.id ?? null);
  const isWhole = blob === null || whole !== null;
  useEffect(() => {
    // A row that was scrolled away and back fetches it again: what was changed in between stays.
    if (whole !== null && value === row.text) setEditing({ messageId: row.message.id, text: whole });
  }, [whole]);

  const send = (): void => {
    if (!isWhole) return;
    if (value.trim() === "" && row.images.length === 0) return;
    const images = row.images.map((url): Part => ({ type: "image_url", image_url: { url } }));
    const content: string | Part[] = images.length === 0 ? value : [{ type: "text", text: value }, ...images];
    store.command(id, { type: "edit_message", message: row.message.id, content, regenerate: true });
    setEditing(null);
  };

  return (
    <div className="user editing">
      <textarea
        ref={field}
        className="bare-field user-edit"
        aria-label={later.edit.label}
        autoFocus
        rows={1}
        readOnly={!isWhole}
        value={value}
        onChange={(event) => setEditing({ messageId: row.message.id, text: event.target.value })}
        onKeyDown={(event) => {
          if (event.nativeEvent.isComposing) return;
          if (event.key === "Escape") {
            event.stopPropagation();
            setEditing(null);
          } else if (event.key === "Enter" && !event.shiftKey) {
            event.preventDefault();
            send();
          }
        }}
      />
      <Images urls={row.images} />
      <div className="edit-bar">
        <span className="hint" role="status">
          {isWhole ? later.edit.hint : failed ? later.edit.failed : later.edit.loading}
        </span>
        <button type="button" className="button quiet small" onClick={() => setEditing(null)}>
          {later.edit.cancel}
        </button>
        <button type="button" className="button primary small" onClick={send} disabled={!isWhole}>
          {later.edit.send}
        </button>
      </div>
    </div>
  );
}
