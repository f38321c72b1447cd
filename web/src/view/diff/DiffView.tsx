/** A change, unified and coloured. The sign stands before each line, so that colour is never the only word. */

import { memo, useState } from "react";
import { text } from "../../text";
import { visible } from "../controls/visible";
import type { DiffLine } from "./lines";

// A change longer than a screen is opened on demand.
const FIRST_LINES = 60;

interface DiffViewProps {
  label: string;
  lines: readonly DiffLine[];
}

const KIND = { " ": "same", "+": "add", "-": "cut", "@": "hunk" } as const;

export const DiffView = memo(function DiffView({ label, lines }: DiffViewProps) {
  const [all, setAll] = useState(false);
  const shown = all ? lines : lines.slice(0, FIRST_LINES);
  return (
    <div className="diff" role="group" aria-label={text.diff.label(label)}>
      <pre className="diff-lines" tabIndex={0}>
        {shown.map((line, at) => (
          <span key={at} className={`diff-line ${KIND[line.sign]}`}>
            <span className="diff-sign">{line.sign === "@" ? "" : line.sign}</span>
            {visible(line.text)}
            {"\n"}
          </span>
        ))}
      </pre>
      {lines.length > shown.length && (
        <button type="button" className="button quiet small" onClick={() => setAll(true)}>
          {text.code.linesMore(lines.length - shown.length)}
        </button>
      )}
    </div>
  );
});
