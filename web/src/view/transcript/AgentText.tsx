/** A block of an agent's text: markdown as it streams, and what became of it when it did not end well. */

import { Suspense } from "react";
import type { TextRow } from "../../model/rows";
import { isObjectText } from "../../model/objecttext";
import { bytes } from "../../measures";
import { text } from "../../text";
import { blobUrl } from "../../transport/api";
import { usePageActions } from "../actions";
import { useConversationId } from "../conversation/scope";
import { Copy } from "../controls/Copy";
import { Icon } from "../controls/Icon";
import { Menu, type MenuAction } from "../controls/Menu";
import { Citations, SpecialBlock } from "../later";
import { usePicked, useStore } from "../store";
import { Markdown } from "./Markdown";

export function AgentText({ row, last }: { row: TextRow; last: boolean }) {
  const { block } = row;
  const id = useConversationId();
  const store = useStore();
  const page = usePageActions();
  const resting = usePicked(id, ({ state }) => last && state.turn === null) ?? false;
  const book = usePicked(id, (conversation) => conversation.markdown);
  const parts = book?.render(row.key, block.text, block.status !== "streaming") ?? [];
  const mark = markOf(row);
  const actions: MenuAction[] = [
    { label: text.message.branch, icon: "branch", writes: true, onSelect: () => page.branch(id, row.messageId) },
  ];
  return (
    <div className={`agent-text ${row.messageStatus === "superseded" ? "superseded" : block.status}`}>
      {block.status === "done" && isObjectText(block.text) ? (
        <Suspense fallback={null}>
          <SpecialBlock row={row} parts={parts} />
        </Suspense>
      ) : (
        <Markdown place={row.key} parts={parts} />
      )}
      {block.blob && (
        <a className="open-full" href={blobUrl(block.blob.id)} target="_blank" rel="noopener">
          {text.message.full(bytes(block.blob.size))}
        </a>
      )}
      {mark && <p className="text-mark">{mark}</p>}
      {block.citations.length > 0 && (
        <Suspense fallback={null}>
          <Citations place={row.key} citations={block.citations} />
        </Suspense>
      )}
      {block.status !== "streaming" && (
        <div className="row-actions">
          <Copy label={text.message.copy} content={() => block.text} />
          {resting && row.messageStatus !== "superseded" && (
            <button
              type="button"
              className="icon-button small redo"
              aria-label={text.message.regenerate}
              title={text.message.regenerate}
              onClick={() => store.command(id, { type: "regenerate" })}
            >
              <Icon name="retry" />
            </button>
          )}
          <Menu label={text.message.menu} actions={actions} className="icon-button small">
            <Icon name="more" />
          </Menu>
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
