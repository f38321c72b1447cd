/** A block of an agent's text: markdown as it streams, and what became of it when it did not end well. */

import type { TextRow } from "../../model/rows";
import { bytes, text } from "../../text";
import { blobUrl } from "../../transport/api";
import { useConversationId } from "../conversation/scope";
import { Copy } from "../controls/Copy";
import { usePicked } from "../store";
import { Markdown } from "./Markdown";

export function AgentText({ row }: { row: TextRow }) {
  const { block } = row;
  const book = usePicked(useConversationId(), (conversation) => conversation.markdown);
  const parts = book?.render(row.key, block.text, block.status !== "streaming") ?? [];
  const mark = markOf(row);
  return (
    <div className={row.messageStatus === "superseded" ? "agent-text superseded" : "agent-text"}>
      <Markdown place={row.key} parts={parts} />
      {block.blob && (
        <a className="open-full" href={blobUrl(block.blob.id)} target="_blank" rel="noopener">
          {text.message.full(bytes(block.blob.size))}
        </a>
      )}
      {mark && <p className="text-mark">{mark}</p>}
      {block.status !== "streaming" && (
        <div className="row-actions">
          <Copy label={text.message.copy} content={() => block.text} />
        </div>
      )}
    </div>
  );
}

function markOf({ block, messageStatus, finishReason }: TextRow): string | null {
  if (messageStatus === "superseded") return text.message.superseded;
  if (block.status === "interrupted") return text.message.interrupted;
  if (finishReason === null) return null;
  if (/length|max/.test(finishReason)) return text.message.cutByLimit;
  if (/refus|content_filter|safety/.test(finishReason)) return text.message.refused;
  return null;
}
