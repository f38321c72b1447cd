/**
 * Another conversation's transcript, looked at from where it was set to work: its own rows, live, without the means to change
 * them. Whoever wants those opens it. Its subagents open inside it in turn.
 */

import { useEffect, useLayoutEffect, useMemo, useRef } from "react";
import type { Row } from "../../model/rows";
import { said } from "../../sentences";
import { text } from "../../text";
import { work } from "../../text.work";
import { ConversationIdContext, useConversationId } from "../conversation/scope";
import { Icon } from "../controls/Icon";
import { useMe } from "../me";
import { usePicked, useStore } from "../store";
import { sayInterrupted } from "../transcript/Marks";
import { Markdown } from "../transcript/Markdown";
import { PlainRow } from "../transcript/PlainRow";
import { Images, Words } from "../transcript/UserMessage";

// The latest of them: what came before is read in the conversation itself, which draws only what is in sight.
const SHOWN_ROWS = 60;
// Closer to the end than this is at the end: less than a line.
const NEAR_END_PX = 20;

/** How high each one was: a row that scrolls away and comes back must not change its height before its rows are there. */
const heights = new Map<string, number>();

interface PeekProps {
  conversation: string;
  agent: string;
  /** Only what was said and done in this exchange. */
  exchange?: string;
}

export function Peek({ conversation, agent, exchange }: PeekProps) {
  const store = useStore();
  const box = useRef<HTMLElement>(null);
  const phase = usePicked(conversation, (known) => (known.state.deleted ? "missing" : known.phase)) ?? "loading";
  const { rows, cut } = useRowsOf(conversation, exchange);
  useEffect(() => {
    store.openConversation(conversation);
    return () => store.closeConversation(conversation);
  }, [store, conversation]);

  const atEnd = useRef(true);
  useLayoutEffect(() => {
    const element = box.current;
    if (!element || rows.length === 0) return;
    if (atEnd.current) element.scrollTop = element.scrollHeight;
    heights.set(conversation, element.clientHeight);
  }, [rows, conversation]);

  return (
    <ConversationIdContext value={conversation}>
      <section
        ref={box}
        className="peek"
        aria-label={work.subagent.name(agent)}
        tabIndex={0}
        style={rows.length === 0 ? { minHeight: heights.get(conversation) } : undefined}
        onScroll={({ currentTarget: { scrollHeight, scrollTop, clientHeight } }) => {
          atEnd.current = scrollHeight - scrollTop - clientHeight <= NEAR_END_PX;
        }}
      >
        {phase === "missing" && <p className="hint">{work.subagent.missing}</p>}
        {phase === "failed" && <p className="hint">{text.transcript.failed}</p>}
        {phase === "loading" && <p className="hint">{work.subagent.loading}</p>}
        {phase === "ready" && rows.length === 0 && <p className="hint">{work.subagent.silent}</p>}
        {cut && <p className="hint">{work.subagent.earlier}</p>}
        {phase !== "missing" &&
          rows.map((row) => (
            <div key={row.key} className="peek-row">
              <PeekRow row={row} />
            </div>
          ))}
      </section>
    </ConversationIdContext>
  );
}

const NO_ROWS: readonly Row[] = [];

function useRowsOf(conversation: string, exchange: string | undefined): { rows: readonly Row[]; cut: boolean } {
  const rows = usePicked(conversation, (known) => known.rows) ?? NO_ROWS;
  const messages = usePicked(conversation, ({ state }) => state.messages);
  const older = usePicked(conversation, ({ state }) => state.offset > 0) ?? false;
  return useMemo(() => {
    const of = exchange === undefined ? null : new Set(messages?.filter((one) => one.exchange === exchange).map(({ id }) => id));
    const found = rows.filter(
      (row) => row.kind !== "day" && row.kind !== "activity" && (of === null || ("messageId" in row && of.has(row.messageId))),
    );
    return { rows: found.slice(-SHOWN_ROWS), cut: found.length > SHOWN_ROWS || (older && of === null) };
  }, [rows, messages, older, exchange]);
}

/** One row of a transcript that is only looked at. */
export function PeekRow({ row }: { row: Row }) {
  const me = useMe();
  switch (row.kind) {
    case "user":
      return (
        <div className="peek-user">
          <Words place={row.key} value={row.text} />
          <Images urls={row.images} />
        </div>
      );
    case "text":
      return <PeekText row={row} />;
    case "interrupted":
      return (
        <p className="event-line">
          <Icon name="cut" />
          {sayInterrupted(row, me)}
        </p>
      );
    case "error":
      return <p className="tool-error">{said(row.error.message)}</p>;
    case "day":
    case "activity":
      return null;
    default:
      return <PlainRow row={row} />;
  }
}

function PeekText({ row }: { row: Extract<Row, { kind: "text" }> }) {
  const { block } = row;
  const book = usePicked(useConversationId(), (known) => known.markdown);
  const parts = book?.render(row.key, block.text, block.status !== "streaming") ?? [];
  return <Markdown place={row.key} parts={parts} />;
}
