/** The log, a line an event: its number, when, its type, and a few of its words. Arrows walk it. */

import { memo, useEffect, useLayoutEffect, useRef, type KeyboardEvent } from "react";
import { Virtualizer, type VirtualizerHandle } from "virtua";
import { gistOf, type LogRow } from "../../model/eventlog";
import { exactTime, number } from "../../measures";
import { clockSeconds, inspector as words } from "../../text.inspector";
import { visible } from "../controls/visible";

interface LogListProps {
  rows: readonly LogRow[];
  /** The event that is looked at. */
  seq: number;
  /** The end is kept in sight. */
  live: boolean;
  onChoose: (seq: number) => void;
}

export function LogList({ rows, seq, live, onChoose }: LogListProps) {
  const scroller = useRef<HTMLDivElement>(null);
  const list = useRef<VirtualizerHandle>(null);
  const chosen = rows.findLastIndex((row) => seqOf(row) <= seq);
  // What was pressed is in sight already; moving it under the pointer would be rude.
  const pressed = useRef(false);

  useLayoutEffect(() => {
    if (live && rows.length > 0) list.current?.scrollToIndex(rows.length - 1, { align: "end" });
  }, [live, rows]);
  useEffect(() => {
    if (!live && !pressed.current && chosen >= 0) list.current?.scrollToIndex(chosen, { align: "nearest" });
    pressed.current = false;
  }, [live, chosen]);

  const walk = (event: KeyboardEvent): void => {
    const steps: Record<string, number> = { ArrowDown: 1, ArrowUp: -1, PageDown: 20, PageUp: -20, Home: -Infinity, End: Infinity };
    const step = steps[event.key];
    if (step === undefined || event.altKey || event.ctrlKey || event.metaKey) return;
    event.preventDefault();
    const to = rows[Math.min(rows.length - 1, Math.max(0, chosen + step))];
    if (to) onChoose(seqOf(to));
  };

  if (rows.length === 0) return <p className="inspector-empty">{words.none}</p>;
  return (
    <div
      ref={scroller}
      className="inspector-log"
      role="listbox"
      aria-label={words.log}
      aria-activedescendant={chosen < 0 ? undefined : `event-${seq}`}
      tabIndex={0}
      data-region
      onKeyDown={walk}
    >
      <Virtualizer ref={list} scrollRef={scroller} data={rows} itemSize={30} bufferSize={600} keepMounted={chosen < 0 ? [] : [chosen]}>
        {(row, index) => (
          <Line
            key={seqOf(row)}
            row={row}
            chosen={index === chosen}
            place={index + 1}
            of={rows.length}
            onChoose={(one) => {
              pressed.current = true;
              onChoose(one);
            }}
          />
        )}
      </Virtualizer>
    </div>
  );
}

function seqOf(row: LogRow): number {
  return row.kind === "gap" ? row.gap.last : row.entry.seq;
}

interface LineProps {
  row: LogRow;
  chosen: boolean;
  place: number;
  of: number;
  onChoose: (seq: number) => void;
}

const Line = memo(
  function Line({ row, chosen, place, of, onChoose }: LineProps) {
    const seq = seqOf(row);
    const option = {
      id: chosen ? `event-${seq}` : undefined,
      role: "option",
      "aria-selected": chosen,
      "aria-posinset": place,
      "aria-setsize": of,
      onClick: () => onChoose(seq),
    };
    if (row.kind === "gap") {
      return (
        <div {...option} className={chosen ? "inspector-gap chosen" : "inspector-gap"}>
          {words.gap(row.gap.first, row.gap.last)}
        </div>
      );
    }
    const { entry } = row;
    const several = entry.seq - entry.first + 1;
    return (
      <div {...option} className={chosen ? "inspector-line chosen" : "inspector-line"}>
        <span className="inspector-seq tabular">{number(entry.seq)}</span>
        <time className="inspector-time tabular" title={exactTime(entry.ts)}>
          {clockSeconds(entry.ts)}
        </time>
        <span className={`inspector-type is-${entry.type.split(".")[0]}`}>{visible(entry.type)}</span>
        <span className="inspector-gist ellipsis">{several > 1 ? words.standsFor(several) : visible(gistOf(entry.line))}</span>
      </div>
    );
  },
  (one, other) => seqOf(one.row) === seqOf(other.row) && one.chosen === other.chosen && one.place === other.place && one.of === other.of,
);
