/** An agent's thinking: one line with its time; opens to the text. */

import type { ThinkingRow } from "../../model/rows";
import { elapsed } from "../../measures";
import { text } from "../../text";
import { Icon } from "../controls/Icon";
import { useSeconds } from "../controls/now";
import { plainly } from "../controls/visible";
import { useDisclosed } from "../store";

export function Thinking({ row }: { row: ThinkingRow }) {
  const { block } = row;
  const [open, setOpen] = useDisclosed(row.key);
  const live = block.status === "streaming";
  return (
    <div className="tool">
      <button type="button" className="tool-line" aria-expanded={open} onClick={() => setOpen(!open)}>
        <span className={live ? "tool-icon alive" : "tool-icon"}>
          <Icon name="thought" />
        </span>
        <span className="tool-verb">{headingOf(row)}</span>
        {live && <LiveTime since={row.ts} />}
        <span className="tool-chevron">
          <Icon name="chevron" />
        </span>
        <span className="tool-result">{!open && <span className="tool-peek">{live ? plainly(lastLine(block.text)) : ""}</span>}</span>
      </button>
      {open && (
        <div className="tool-body">
          <p className="thinking-text">{block.redacted && block.text === "" ? text.thinking.redactedBody : plainly(block.text)}</p>
        </div>
      )}
    </div>
  );
}

export function LiveTime({ since }: { since: number }) {
  const now = useSeconds();
  return <span className="tool-time tabular">{elapsed(now - since)}</span>;
}

export function headingOf({ block }: ThinkingRow): string {
  if (block.status === "streaming") return text.thinking.live;
  if (block.status === "interrupted") return text.thinking.interrupted;
  if (block.redacted) return text.thinking.redacted;
  return text.thinking.done(block.duration_ms);
}

function lastLine(value: string): string {
  return value.trimEnd().split("\n").at(-1) ?? "";
}
