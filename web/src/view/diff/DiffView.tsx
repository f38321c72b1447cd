/**
 * A change, unified or side by side, coloured. The sign stands before each line, so that colour is never the only word. Long
 * stretches that did not change are folded; a very long change comes in pieces.
 */

import { memo, useState, useSyncExternalStore } from "react";
import { later } from "../../text.later";
import { visible } from "../controls/visible";
import { useDisclosed } from "../store";
import type { DiffLine } from "../../model/lines";
import { pairs, stretches } from "./shape";

// A change longer than a screen is opened on demand, and a huge one in pieces that a browser can draw at once.
const FIRST_LINES = 60;
const MORE_LINES = 1500;

// Two columns of code need room.
const wide = window.matchMedia("(min-width: 64rem)");

interface DiffViewProps {
  label: string;
  lines: readonly DiffLine[];
  /** There is room for two columns, so they come first. */
  roomy?: boolean;
}

const KIND = { " ": "same", "+": "add", "-": "cut", "@": "hunk" } as const;

export const DiffView = memo(function DiffView({ label, lines, roomy = false }: DiffViewProps) {
  const [limit, setLimit] = useState(FIRST_LINES);
  const [split, setSplit] = useDisclosed(roomy ? "diff:split:roomy" : "diff:split", roomy);
  const isWide = useSyncExternalStore(onWidth, () => wide.matches);
  const changed = lines.some(({ sign }) => sign === "-") && lines.some(({ sign }) => sign === "+");
  const beside = isWide && changed && split;
  const shown = lines.length > limit ? lines.slice(0, limit) : lines;
  const more = Math.min(MORE_LINES, lines.length - shown.length);
  return (
    <div className={beside ? "diff is-split" : "diff"} role="group" aria-label={later.diff.label(label)}>
      {isWide && changed && (
        <button type="button" className="diff-split" aria-pressed={split} onClick={() => setSplit(!split)}>
          {later.diff.sideBySide}
        </button>
      )}
      <pre className="diff-lines" tabIndex={0}>
        {stretches(shown).map((one) =>
          one.folded ? (
            <Folded key={one.from} lines={one.lines} beside={beside} />
          ) : (
            <Lines key={one.from} lines={one.lines} beside={beside} />
          ),
        )}
      </pre>
      {more > 0 && (
        <button type="button" className="button quiet small" onClick={() => setLimit(limit + MORE_LINES)}>
          {later.diff.linesMore(more)}
        </button>
      )}
    </div>
  );
});

function onWidth(listener: () => void): () => void {
  wide.addEventListener("change", listener);
  return () => wide.removeEventListener("change", listener);
}

function Folded({ lines, beside }: { lines: readonly DiffLine[]; beside: boolean }) {
  const [open, setOpen] = useState(false);
  if (open) return <Lines lines={lines} beside={beside} />;
  return (
    <button type="button" className="diff-fold" onClick={() => setOpen(true)}>
      {later.diff.unchanged(lines.length)}
    </button>
  );
}

function Lines({ lines, beside }: { lines: readonly DiffLine[]; beside: boolean }) {
  if (!beside) return lines.map((line, at) => <Line key={at} line={line} />);
  return pairs(lines).map(([before, after], at) =>
    before !== null && before === after && before.sign === "@" ? (
      <Line key={at} line={before} />
    ) : (
      <span key={at} className="diff-pair">
        {before ? <Line line={before} /> : <span className="diff-line none" />}
        {after ? <Line line={after} /> : <span className="diff-line none" />}
      </span>
    ),
  );
}

function Line({ line }: { line: DiffLine }) {
  return (
    <span className={`diff-line ${KIND[line.sign]}`}>
      <span className="diff-sign">{line.sign === "@" ? "" : line.sign}</span>
      {visible(line.text)}
      {"\n"}
    </span>
  );
}
