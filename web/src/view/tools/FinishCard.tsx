/** The end of a task, as its agent reports it: what it says was done, and what changed on disk. */

import { useMemo } from "react";
import { byFile, total } from "../../model/changes";
import { renderMarkdown } from "../../model/markdown";
import type { Message } from "../../protocol/events.gen";
import { text } from "../../text";
import { later } from "../../text.later";
import { useConversationId } from "../conversation/scope";
import { Icon } from "../controls/Icon";
import { Changes, Stat } from "../diff/Changes";
import { useDisclosed, usePicked } from "../store";
import { Markdown } from "../transcript/Markdown";
import { argument } from "./say";
import { PlainToolRow, type ToolRowProps } from "./ToolRow";

const NONE: readonly Message[] = [];

export default function FinishCard({ place, block }: ToolRowProps) {
  const id = useConversationId();
  const summary = argument(block.input, "summary", "report", "message") ?? "";
  const parts = useMemo(() => renderMarkdown(summary), [summary]);
  const messages = usePicked(id, ({ state }) => state.messages) ?? NONE;
  const changes = useMemo(() => changesOf(messages, block.call), [messages, block.call]);
  const [open, setOpen] = useDisclosed(`finish:${place}`);
  if (block.status !== "ok" || summary === "") return <PlainToolRow place={place} block={block} />;
  const files = byFile(changes);
  const { added, removed } = total(files);
  return (
    <section className="finish" aria-label={later.finish.heading}>
      <h2 className="finish-heading">
        <Icon name="check" />
        {later.finish.heading}
      </h2>
      <Markdown place={`finish:${place}`} parts={parts} />
      {files.length > 0 && (
        <>
          <button type="button" className="tool-line" aria-expanded={open} onClick={() => setOpen(!open)}>
            <span className="tool-icon">
              <Icon name="diff" />
            </span>
            <span className="tool-verb">{text.changes.summary(files.length)}</span>
            <Stat added={added} removed={removed} />
            <span className="tool-chevron">
              <Icon name="chevron" />
            </span>
          </button>
          {open && <Changes place={`finish:${place}`} changes={changes} />}
        </>
      )}
    </section>
  );
}

/** What the turn of a call did to files. */
function changesOf(messages: readonly Message[], call: string) {
  const { turn } = messages.findLast(({ blocks }) => blocks.some((block) => block.type === "tool" && block.call === call)) ?? {};
  if (turn == null) return [];
  return messages
    .filter((message) => message.turn === turn)
    .flatMap(({ blocks }) => blocks.flatMap((block) => (block.type === "tool" ? block.changes : [])));
}
