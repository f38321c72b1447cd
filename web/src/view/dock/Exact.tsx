/**
 * A scrolling part of a request that knows whether its end has been in sight, and all that an approval approves as lines in it.
 * Whether an answer may allow is the model's to say (`model/approvaltext.ts`); `useAnswer` asks it.
 */

import { type ReactNode, useCallback, useEffect, useId, useMemo, useRef, useState } from "react";
import { approvalLines, type Shown, type ShownKind } from "../../model/approvaltext";
import type { Request } from "../../protocol/events.gen";
import { asking } from "../../text.asking";

/** Of so many rows on the screen (null: not laid out yet), the last that was in sight. */
export interface Reading {
  rows: number | null;
  reached: number;
}

// A browser lays out so many at once, and more as they are come to.
const PIECE_LINES = 400;

interface ReaderProps {
  label: string;
  className?: string;
  /** Rows that are not laid out yet. */
  pending?: number;
  /** The end of what is laid out was in sight, and there is more. */
  onMore?: () => void;
  onReading: (reading: Reading) => void;
  children: ReactNode;
}

export function Reader({ label, className = "request-scroll", pending = 0, onMore, onReading, children }: ReaderProps) {
  const box = useRef<HTMLDivElement>(null);
  const end = useRef<HTMLSpanElement>(null);
  const [left, setLeft] = useState(0);
  const id = useId();

  const measure = useCallback(
    (isEnd: boolean) => {
      const part = box.current;
      if (!part || part.clientHeight === 0) return;
      const row = Number.parseFloat(getComputedStyle(part).lineHeight) || 20;
      const rows = Math.max(1, Math.ceil(part.scrollHeight / row)) + pending;
      const reached = isEnd && pending === 0 ? rows : Math.min(rows - 1, Math.floor((part.scrollTop + part.clientHeight) / row));
      setLeft(rows - reached);
      onReading({ rows, reached });
    },
    [pending, onReading],
  );

  // What cuts it off may be the box, the card, or the page: only the browser knows them all.
  useEffect(() => {
    const mark = end.current;
    if (!mark) return;
    const observer = new IntersectionObserver(
      ([seen]) => {
        const isEnd = (seen?.intersectionRatio ?? 0) >= 0.5;
        measure(isEnd);
        if (isEnd && pending > 0) onMore?.();
      },
      { threshold: [0, 0.5, 1] },
    );
    observer.observe(mark);
    return () => observer.disconnect();
  }, [measure, pending, onMore]);

  const onNext = (): void => {
    const part = box.current;
    if (!part) return;
    part.focus({ preventScroll: true });
    if (part.scrollTop + part.clientHeight >= part.scrollHeight - 2) end.current?.scrollIntoView({ block: "nearest" });
    else part.scrollBy({ top: part.clientHeight * 0.9 });
  };

  return (
    <div className="reader">
      <div ref={box} className={className} tabIndex={0} role="group" aria-label={label} aria-describedby={left > 0 ? id : undefined} onScroll={() => left > 0 && measure(false)}>
        {children}
        <span ref={end} className="reader-end" aria-hidden="true" />
      </div>
      {left > 0 && (
        <button type="button" id={id} className="reader-more" onClick={onNext}>
          {asking.approval.rowsMore(left)}
        </button>
      )}
    </div>
  );
}

/** Exactly what would run, with all its arguments. */
export function Exact({ request, onReading }: { request: Request; onReading: (reading: Reading) => void }) {
  return <ExactAll requests={[request]} onReading={onReading} />;
}

interface ExactAllProps {
  requests: readonly Request[];
  /** What stands above each, where there are several. */
  heading?: (request: Request) => ReactNode;
  onReading: (reading: Reading) => void;
}

export function ExactAll({ requests, heading, onReading }: ExactAllProps) {
  const parts = useMemo(
    () => requests.map((request) => ({ key: request.id, heading: heading?.(request), lines: approvalLines(request.preview, request.input) })),
    [requests, heading],
  );
  return <ExactLines parts={parts} label={asking.approval.input} onReading={onReading} />;
}

interface ExactLinesProps {
  parts: readonly { key: string; heading?: ReactNode; lines: readonly Shown[] }[];
  label: string;
  className?: string;
  onReading: (reading: Reading) => void;
}

/** Texts to be read to their end, laid out as they are come to. */
export function ExactLines({ parts, label, className = "request-exact", onReading }: ExactLinesProps) {
  const [limit, setLimit] = useState(PIECE_LINES);
  const total = parts.reduce((sum, { lines }) => sum + lines.length, 0);
  const onMore = useCallback(() => setLimit((now) => now + PIECE_LINES), []);
  let room = limit;
  return (
    <Reader label={label} className={className} pending={Math.max(0, total - limit)} onMore={onMore} onReading={onReading}>
      {parts.map(({ key, heading, lines }) => {
        const shown = lines.slice(0, Math.max(0, room));
        room -= lines.length;
        return (
          <div key={key}>
            {heading}
            <pre className="exact-lines">
              {shown.map((line, at) => (
                <Line key={at} line={line} />
              ))}
            </pre>
          </div>
        );
      })}
    </Reader>
  );
}

const SIGNS: Partial<Record<ShownKind, string>> = { add: "+", cut: "-", same: " ", note: "⚠" };

function Line({ line: { kind, pieces } }: { line: Shown }) {
  const sign = SIGNS[kind];
  return (
    <span className={`exact-line is-${kind}`}>
      {sign !== undefined && <span className="exact-sign">{sign} </span>}
      {pieces.map((piece, at) =>
        at % 2 ? (
          <span key={at} className="exact-fold">
            {piece}
          </span>
        ) : (
          piece
        ),
      )}
      {"\n"}
    </span>
  );
}
