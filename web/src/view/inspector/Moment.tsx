/** The conversation as it stood at one event: what was said until then, what it was doing, what waited. Changes nothing. */

import { useLayoutEffect, useMemo, useRef } from "react";
import { Virtualizer, type VirtualizerHandle } from "virtua";
import { MarkdownBook } from "../../model/markdown";
import type { State } from "../../protocol/events.gen";
import { text } from "../../text";
import { inspector as words } from "../../text.inspector";
import { ConversationIdContext } from "../conversation/scope";
import { MomentContext } from "../controls/now";
import { StoreContext, useStore } from "../store";
import { PeekRow } from "../subagents/Peek";
import { frozen, viewOf } from "./frozen";
import "../../style/work.css";

interface MomentProps {
  id: string;
  state: State;
  /** It is now, so what runs goes on. */
  live: boolean;
}

export function Moment({ id, state, live }: MomentProps) {
  const store = useStore();
  const texts = useRef<MarkdownBook>(null);
  texts.current ??= new MarkdownBook();
  const book = texts.current;
  const view = useMemo(() => viewOf(id, state, book), [id, state, book]);
  const then = useMemo(() => frozen(store, view), [store, view]);
  const rows = useMemo(() => view.rows.filter(({ kind }) => kind !== "activity" && kind !== "day"), [view]);
  const scroller = useRef<HTMLElement>(null);
  const list = useRef<VirtualizerHandle>(null);
  const open = state.requests.filter(({ status }) => status === "open").length;

  // The end is what changes from one moment to the next.
  useLayoutEffect(() => {
    if (rows.length > 0) list.current?.scrollToIndex(rows.length - 1, { align: "end" });
  }, [rows]);

  return (
    <StoreContext value={then}>
      <MomentContext value={live ? null : state.updated_at}>
        <ConversationIdContext value={id}>
          <p className="inspector-summary tabular">
            {text.join(
              words.at(state.seq),
              text.header.status[state.status],
              words.messages(state.offset + state.messages.length),
              state.queue.length > 0 && words.queued(state.queue.length),
              open > 0 && words.requests(open),
            )}
          </p>
          <section ref={scroller} className="peek inspector-moment" aria-label={words.panes.transcript} tabIndex={0} data-region>
            {rows.length === 0 && <p className="hint">{words.nothing}</p>}
            <Virtualizer ref={list} scrollRef={scroller} data={rows} bufferSize={800}>
              {(row) => (
                <div key={row.key} className="peek-row">
                  <PeekRow row={row} />
                </div>
              )}
            </Virtualizer>
          </section>
        </ConversationIdContext>
      </MomentContext>
    </StoreContext>
  );
}
