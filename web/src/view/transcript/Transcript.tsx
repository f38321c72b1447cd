/**
 * The conversation as a scrolling list of rows, of which only those near the window exist. Follows its end until the reader
 * scrolls away; older pages come in above without moving what is being read.
 *
 * The rules of following are the model's (`follow`); this tells it what the reader did and does what it says.
 */

import { memo, useCallback, useEffect, useLayoutEffect, useMemo, useRef, useState, type KeyboardEvent, type MouseEvent, type ReactElement, type Ref } from "react";
import { type CustomContainerComponentProps, Virtualizer, type VirtualizerHandle } from "virtua";
import { FOLLOWING, follow, type FollowEvent } from "../../model/follow";
import { freshFrom } from "../../model/left";
import type { OpenConversation } from "../../model/store";
import { startOfDay } from "../../measures";
import { text } from "../../text";
import { Icon } from "../controls/Icon";
import { isTyping, onAsked } from "../keys";
import { useTurnRows } from "../later";
import type { Place } from "../route";
import type { Status } from "../../protocol/events.gen";
import { usePick, usePicked, useStore } from "../store";
import { isDivider, RowView, type RowViewProps, type ShownRow } from "./RowView";

// The zone above the first row; the same height in style/transcript.css. Fixed, so that rows keep their places.
const TOP_PX = 56;
// Closer to the end than this is at the end: less than a line.
const NEAR_END_PX = 20;
// Where text fades out under the bar.
const EDGE_PX = 24;
// Older messages are fetched before the reader meets the edge.
const LOAD_OLDER_PX = 1200;
// Rows kept ready beyond the window: a fast wheel shows no blank.
const BUFFER_PX = 800;
// What a row is taken for until it is measured: two or three lines, so that the first picture makes no more than fill it.
const ROW_PX = 96;
// By then an opened row has its height; if that left the reader at the end, following goes on.
const OPENED_MS = 400;
// A scroll this soon after a wheel, touch or key was the reader's.
const INTENT_MS = 800;

interface TranscriptProps {
  id: string;
  /** Open there instead of at the end. */
  place: Place;
}

export const Transcript = memo(function Transcript({ id, place }: TranscriptProps) {
  const conversation = usePicked(id, (known) => known);
  return conversation ? <Scroller conversation={conversation} place={place} /> : null;
});

interface ScrollerProps {
  conversation: OpenConversation;
  place: Place;
}

function Scroller({ conversation, place }: ScrollerProps) {
  const store = useStore();
  const { id, older, prependCount, selected, state } = conversation;
  const scroller = useRef<HTMLDivElement>(null);
  const { rows, count } = useShownRows(conversation, scroller);
  const elementOf = useElements();
  const list = useRef<VirtualizerHandle>(null);
  const { pill, hushed, report, touched } = useFollow(scroller, count, prependCount);

  // `shift` keeps the place from the end, and only where rows were put before the first.
  const prepended = useRef(prependCount);
  const shift = prepended.current !== prependCount;
  useLayoutEffect(() => {
    prepended.current = prependCount;
  }, [prependCount]);

  const loadOlder = useCallback(() => {
    const element = scroller.current;
    // First what costs nothing: asking where it stands makes the browser lay everything out, and following moves it often.
    if (older === "more" && element && element.scrollTop < LOAD_OLDER_PX) void store.loadOlder(id);
  }, [store, id, older]);
  useEffect(loadOlder, [loadOlder, prependCount]);

  const show = useCallback((key: string) => {
    const index = latest.current.findIndex((row) => row.key === key);
    if (index >= 0) list.current?.scrollToIndex(index, { align: "start", offset: -TOP_PX });
  }, []);
  const { work } = conversation;
  const unfold = useCallback(
    (key: string) => {
      const holder = work?.holderOf(key) ?? null;
      if (holder !== null) store.setDisclosed(holder, true);
    },
    [store, work],
  );
  const latest = useRef(rows);
  latest.current = rows;

  useJump(conversation, place, () => report({ type: "jumped_away" }), unfold, show);

  const selectedIndex = useMemo(
    () => (selected === null ? -1 : rows.findIndex((row) => row.key === selected)),
    [rows, selected],
  );
  const keepMounted = [...(pill === null ? rowsAtEnd(list.current, rows.length) : []), ...(selectedIndex < 0 ? [] : [selectedIndex])];

  useLayoutEffect(() => {
    // Whoever writes keeps the focus: finding jumps from hit to hit without leaving its field.
    if (selected === null || isTyping(document.activeElement)) return;
    const element = scroller.current?.querySelector<HTMLElement>(`[data-key="${CSS.escape(selected)}"]`);
    if (element && !element.contains(document.activeElement)) element.focus({ preventScroll: true });
  }, [selected]);

  const toEnd = useCallback(() => {
    // Through the list too: a jump that is still under way would pull it back.
    list.current?.scrollTo(scroller.current?.scrollHeight ?? 0);
    report({ type: "jumped_to_end" });
  }, [report]);
  const toStart = useCallback(() => {
    report({ type: "jumped_away" });
    list.current?.scrollToIndex(0, { align: "start", offset: -TOP_PX });
  }, [report]);
  useEffect(() => onAsked("end", toEnd), [toEnd]);
  useEffect(() => onAsked("start", toStart), [toStart]);

  const step = (by: number): void => {
    const from = selectedIndex >= 0 ? selectedIndex : (list.current?.findItemIndex(scroller.current?.scrollTop ?? 0) ?? 0) - by;
    let next = from + by;
    while (isDivider(rows[next])) next += by;
    const row = rows[next];
    if (!row) return;
    touched();
    report({ type: "jumped_away" });
    list.current?.scrollToIndex(next, { align: "nearest" });
    store.select(id, row.key);
    // Not right under the edge, where the text fades out.
    if (by < 0) requestAnimationFrame(() => clearOfEdge(scroller.current, row.key));
  };

  // Opening a row is reading it: it stays where it is, and what it shows grows below, even at the end.
  const onOpening = (event: MouseEvent): void => {
    const target = event.target instanceof Element ? event.target.closest("[aria-expanded=false]:not([aria-haspopup])") : null;
    if (target === null) return;
    hushed.current = pill === null;
    report({ type: "jumped_away" });
    setTimeout(() => {
      hushed.current = false;
      report(scroller.current && isAtEnd(scroller.current) ? { type: "scrolled", atEnd: true } : { type: "grew", newRows: 0 });
    }, OPENED_MS);
  };

  const onKeyDown = (event: KeyboardEvent): void => {
    if (isTyping(event.target) || event.ctrlKey || event.metaKey || event.altKey) return;
    const key = event.key.toLowerCase();
    if (key === "j") step(1);
    else if (key === "k") step(-1);
    else if (key === "o") toggleRow(scroller.current, selected);
    else if (key === "g" && event.shiftKey) toStart();
    else if (key === "g") toEnd();
    else {
      if (/^(?:arrow(?:up|down)|page(?:up|down)|home|end| )$/.test(key)) touched();
      return;
    }
    event.preventDefault();
  };

  return (
    <div className="transcript-frame">
      <div
        ref={scroller}
        className="transcript"
        role="log"
        aria-live="off"
        aria-label={text.transcript.label}
        tabIndex={0}
        data-region
        onKeyDown={onKeyDown}
        onWheel={touched}
        onTouchMove={touched}
        onPointerDown={touched}
        onScroll={loadOlder}
        onClickCapture={onOpening}
      >
        <Top conversation={conversation} />
        <Virtualizer
          ref={list}
          as={Canvas}
          data={rows}
          scrollRef={scroller}
          itemSize={ROW_PX}
          startMargin={TOP_PX}
          shift={shift}
          bufferSize={BUFFER_PX}
          keepMounted={keepMounted}
          onResize={() => report({ type: "grew", newRows: 0 })}
        >
          {(row, index) =>
            elementOf({
              row,
              speaker: speakerOf(rows, index, conversation),
              selected: row.key === selected,
              last: index === rows.length - 1,
            })
          }
        </Virtualizer>
        {rows.length === 0 && <p className="transcript-empty">{text.transcript.empty}</p>}
        <div className="transcript-end">{state.turn !== null && <Typing waits={isWaiting(state.status)} />}</div>
      </div>
      <div className="transcript-ring" />
      {pill !== null && (
        <button type="button" className="pill" onClick={toEnd}>
          <Icon name="down" />
          <span className="tabular">{text.transcript.newBelow(pill)}</span>
        </button>
      )}
    </div>
  );
}

/** The agent is at it: stands at the end of its answer for as long as the turn lasts. The activity line says it in words. */
function Typing({ waits }: { waits: boolean }) {
  return (
    <div className={waits ? "typing is-waiting" : "typing"} aria-hidden="true">
      <i />
      <i />
      <i />
    </div>
  );
}

function isWaiting(status: Status): boolean {
  return status === "paused" || status === "waiting_user_input";
}

/** What rows lie on. The list would make it deaf to the pointer while it moves: following it moves with every line. */
function Canvas({ ref, style: { pointerEvents: _, ...style }, children }: CustomContainerComponentProps) {
  return (
    <div ref={ref as Ref<HTMLDivElement>} style={style}>
      {children}
    </div>
  );
}

/**
 * Those of the last window and just above it, for who follows. The list keeps rows ready only ahead of a movement, so it
 * would unmake the others with every line and make them again at every pause.
 */
function rowsAtEnd(list: VirtualizerHandle | null, rowCount: number): number[] {
  if (list === null) return [];
  // An empty list finds -1.
  const first = Math.max(0, list.findItemIndex(list.scrollSize - list.viewportSize - BUFFER_PX));
  return Array.from({ length: Math.max(0, rowCount - first) }, (_, at) => first + at);
}

/** The list passes over a row whose element is the same as before; with every token that is all but one. */
function useElements(): (props: RowViewProps) => ReactElement {
  const known = useRef(new WeakMap<ShownRow, ReactElement<RowViewProps>>());
  return useCallback((props) => {
    const before = known.current.get(props.row);
    const { speaker, selected, last } = before?.props ?? {};
    if (before && speaker === props.speaker && selected === props.selected && last === props.last) return before;
    const element = <RowView key={props.row.key} {...props} />;
    known.current.set(props.row, element);
    return element;
  }, []);
}

const NEW_ROW: ShownRow = { kind: "new", key: "new" };

/**
 * The rows to draw: without the activity line, the work of turns folded, with what is still on its way (unless it will be
 * queued). `count` is their number before folding: opening a fold brings nothing new.
 */
function useShownRows(conversation: OpenConversation, scroller: { current: HTMLElement | null }): { rows: readonly ShownRow[]; count: number } {
  const { rows, outbox, state, leftAt } = conversation;
  // What cannot be opened again must not be folded.
  const work = useTurnRows() && conversation.work;
  const settled = useMemo(() => {
    // A conversation that began today needs no heading to say so.
    const from = rows[0]?.kind === "day" && rows[0].day === startOfDay(Date.now()) ? 1 : 0;
    // Cut and not filtered: this is done with every token, for thousands of rows.
    const shown = rows.slice(from, rows.at(-1)?.kind === "activity" ? -1 : undefined) as ShownRow[];
    const fresh = leftAt === null ? -1 : freshFrom(rows, leftAt) - from;
    if (fresh > 0) shown.splice(fresh, 0, NEW_ROW);
    return shown;
  }, [rows, leftAt]);
  const live = state.turn?.id ?? null;
  const choices = useFoldChoices(conversation, live, scroller);
  const folded = useMemo(() => work?.fold(settled, live, choices) ?? settled, [work, settled, live, choices]) as readonly ShownRow[];
  const busy = live !== null;
  const pending = useMemo(() => {
    if (busy) return [];
    const sends = outbox.filter(({ command }) => command.type === "send_message" || command.type === "retry_from");
    return sends.map((entry): ShownRow => ({ kind: "pending", key: `pending:${entry.id}`, entry }));
  }, [outbox, busy]);
  const shown = useMemo(() => (pending.length === 0 ? folded : [...folded, ...pending]), [folded, pending]);
  return { rows: shown, count: settled.length + pending.length };
}

/** What the reader chose to open; and a turn that ends while somebody reads in it stays open, and does not fold under their eyes. */
function useFoldChoices({ rows }: OpenConversation, live: string | null, scroller: { current: HTMLElement | null }): ReadonlyMap<string, boolean> {
  const store = useStore();
  const chosen = usePick((snapshot) => snapshot.disclosure);
  const before = useRef(live);
  const kept = useRef<string | null>(null);
  if (before.current !== live) {
    const key = `work:${before.current}`;
    const opened = rows.some((row) => "turn" in row && row.turn === before.current && chosen.get(row.key) === true);
    if (before.current !== null && !chosen.has(key) && (opened || isRead(scroller.current))) kept.current = key;
    before.current = live;
  }
  useEffect(() => {
    if (kept.current !== null) store.setDisclosed(kept.current, true);
    kept.current = null;
  });
  return kept.current === null ? chosen : new Map(chosen).set(kept.current, true);
}

/** Whether somebody is in the middle of it: scrolled away from the end, with the focus on a row, or with words marked. */
function isRead(scroller: HTMLElement | null): boolean {
  if (scroller === null) return false;
  const { activeElement } = document;
  const marked = document.getSelection();
  return (
    !isAtEnd(scroller) ||
    (activeElement !== scroller && scroller.contains(activeElement)) ||
    (marked?.isCollapsed === false && scroller.contains(marked.anchorNode))
  );
}

/**
 * Runs the model's rules of following. Kept outside React's state, because it changes with every token; only the pill's
 * number is drawn.
 */
function useFollow(scroller: { current: HTMLDivElement | null }, rowCount: number, prependCount: number) {
  const state = useRef(FOLLOWING);
  const intentUntil = useRef(0);
  // Until it is known whether the reader has left the end, no way back to it is offered.
  const hushed = useRef(false);
  const [pill, setPill] = useState<number | null>(null);

  const report = useCallback(
    (event: FollowEvent) => {
      state.current = follow(state.current, event);
      const element = scroller.current;
      if (state.current.scrollToEnd && element) {
        element.scrollTop = element.scrollHeight;
        state.current = follow(state.current, { type: "settled" });
      }
      setPill(state.current.following || hushed.current ? null : state.current.newCount);
    },
    [scroller],
  );

  const touched = useCallback(() => {
    intentUntil.current = performance.now() + INTENT_MS;
  }, []);

  useEffect(() => {
    const element = scroller.current;
    if (!element) return;
    let last: number | null = element.scrollTop;
    const onScroll = (): void => {
      // Following moves it with every line: where it stands is asked only when the reader may have moved it.
      if (performance.now() >= intentUntil.current) {
        last = null;
        return;
      }
      const { scrollTop } = element;
      const atEnd = isAtEnd(element);
      if (atEnd || scrollTop !== last) report({ type: "scrolled", atEnd });
      last = scrollTop;
    };
    element.addEventListener("scroll", onScroll, { passive: true });
    return () => element.removeEventListener("scroll", onScroll);
  }, [scroller, report]);

  useLayoutEffect(() => {
    // The list listens from the next microtask on. A browser tells it of the first scroll to the end a frame later, and until
    // then it would draw the rows of the beginning.
    queueMicrotask(() => scroller.current?.dispatchEvent(new Event("scroll")));
  }, [scroller]);

  const before = useRef({ rowCount, prependCount });
  useLayoutEffect(() => {
    // What came in above is older, not new.
    const above = prependCount !== before.current.prependCount;
    const newRows = above ? 0 : Math.max(0, rowCount - before.current.rowCount);
    before.current = { rowCount, prependCount };
    report({ type: "grew", newRows });
  }, [rowCount, prependCount, report]);

  return { pill, hushed, report, touched };
}

function isAtEnd({ scrollHeight, scrollTop, clientHeight }: HTMLElement): boolean {
  return scrollHeight - scrollTop - clientHeight <= NEAR_END_PX;
}

/** Opens at a place the address names: loads until it is there, shows it, and points it out. */
function useJump(
  { id, phase, rows, older }: OpenConversation,
  { at, message, visit }: Place,
  onJump: () => void,
  unfold: (key: string) => void,
  show: (key: string) => void,
): void {
  const store = useStore();
  const done = useRef<number | null>(null);
  useEffect(() => {
    if ((at === null && message === null) || phase !== "ready" || done.current === visit) return;
    const seq = at ?? rows.find((row) => "messageId" in row && row.messageId === message)?.seq;
    if (seq === undefined && older === "more") void store.loadOlder(id);
    if (seq === undefined && (older === "more" || older === "loading")) return;
    done.current = visit;
    if (seq === undefined) return;
    onJump();
    void store.reveal(id, seq).then((key) => {
      if (key === null) return;
      unfold(key);
      // The row is in the snapshot; the list has drawn it by the next frame.
      requestAnimationFrame(() => {
        show(key);
        store.select(id, key);
      });
    });
  }, [at, message, visit, phase, rows, older, store, id, onJump, unfold, show]);
}

function speakerOf(rows: readonly ShownRow[], index: number, { state }: OpenConversation): string | null {
  const row = rows[index];
  // Who took over is said in a line of its own.
  if (!row || !("agent" in row) || !row.first || rows[index - 1]?.kind === "switch") return null;
  let before = index - 1;
  while (before >= 0 && !("agent" in (rows[before] ?? {}))) before -= 1;
  const previous = rows[before];
  const agent = row.agent ?? state.agent;
  const changed = previous && "agent" in previous ? previous.agent !== row.agent || previous.model !== row.model : agent !== state.agent;
  return changed ? text.join(agent, row.model) : null;
}

function clearOfEdge(scroller: HTMLElement | null, key: string): void {
  const row = scroller?.querySelector(`[data-key="${CSS.escape(key)}"]`);
  if (!scroller || !row) return;
  const hidden = scroller.getBoundingClientRect().top + EDGE_PX - row.getBoundingClientRect().top;
  if (hidden > 0) scroller.scrollTop -= hidden;
}

function toggleRow(scroller: HTMLElement | null, key: string | null): void {
  if (key === null) return;
  scroller?.querySelector<HTMLElement>(`[data-key="${CSS.escape(key)}"] [aria-expanded]`)?.click();
}

function Top({ conversation: { id, older, state } }: { conversation: OpenConversation }) {
  const store = useStore();
  return (
    <div className="transcript-top">
      {older === "start" && state.messages.length > 0 && <p>{text.transcript.start}</p>}
      {older === "loading" && <p role="status">{text.transcript.loadingOlder}</p>}
      {older === "failed" && (
        <p role="alert">
          {text.transcript.olderFailed}{" "}
          <button type="button" className="link-button" onClick={() => void store.loadOlder(id)}>
            {text.transcript.retry}
          </button>
        </p>
      )}
    </div>
  );
}
