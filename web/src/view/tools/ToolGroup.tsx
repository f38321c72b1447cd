/** A run of reading and searching, with the thinking between, in one line. Whatever failed or waits comes through the closed line. */

import type { ToolGroupRow } from "../../model/rows";
import type { ToolBlock } from "../../protocol/events.gen";
import { text } from "../../text";
import { Icon } from "../controls/Icon";
import { useDisclosed } from "../store";
import { Thinking } from "../transcript/Thinking";
import { sayGroup } from "./say";
import { StateMark, ToolRow } from "./ToolRow";

const TROUBLED: ReadonlySet<ToolBlock["status"]> = new Set(["waiting", "error", "denied", "interrupted"]);

export function ToolGroup({ row }: { row: ToolGroupRow }) {
  const [open, setOpen] = useDisclosed(row.key);
  const said = sayGroup(row.tools.map((tool) => tool.block));
  const troubled = row.tools.filter(({ block: { status } }) => TROUBLED.has(status));
  const shown = open ? row.members : troubled;
  return (
    <div className={`tool ${stateOf(row, said)}`}>
      <button type="button" className="tool-line" aria-expanded={open} onClick={() => setOpen(!open)}>
        <span className={said.live ? "tool-icon alive" : "tool-icon"}>
          <Icon name="search" />
        </span>
        <span className="tool-verb">{said.verb}</span>
        <span className="tool-object">{said.what}</span>
        <span className="tool-chevron">
          <Icon name="chevron" />
        </span>
        <span className={said.failed > 0 ? "tool-result is-bad" : "tool-result"}>
          {said.failed > 0 && text.tool.groupFailed(said.failed)}
        </span>
        {stateOf(row, said) === "success" && <StateMark icon="check" words={text.tool.ok} />}
      </button>
      {shown.length > 0 && (
        <div className="tool-members">
          {shown.map((member) =>
            member.kind === "thinking" ? (
              <Thinking key={member.key} row={member} />
            ) : (
              <ToolRow key={member.key} place={member.key} block={member.block} />
            ),
          )}
        </div>
      )}
    </div>
  );
}

function stateOf(row: ToolGroupRow, { live, failed }: { live: boolean; failed: number }): string {
  if (live) return "pending";
  if (failed > 0) return "error";
  return row.tools.some(({ block }) => block.status === "interrupted") ? "interrupted" : "success";
}

export function nameOfGroup(row: ToolGroupRow): string {
  const said = sayGroup(row.tools.map((tool) => tool.block));
  return text.tool.name(said.verb, said.what, said.failed > 0 ? text.tool.groupFailed(said.failed) : "");
}
