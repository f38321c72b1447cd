/** A run of reading and searching, with the thinking between, in one line. Whatever failed or waits comes through the closed line. */

import type { ToolGroupRow } from "../../model/rows";
import { text } from "../../text";
import { Icon } from "../controls/Icon";
import { useDisclosed } from "../store";
import { Thinking } from "../transcript/Thinking";
import { sayGroup } from "./say";
import { ToolRow } from "./ToolRow";

export function ToolGroup({ row }: { row: ToolGroupRow }) {
  const [open, setOpen] = useDisclosed(row.key);
  const said = sayGroup(row.tools.map((tool) => tool.block));
  const troubled = row.tools.filter(({ block }) => block.status === "waiting" || block.status === "error" || block.status === "denied");
  const shown = open ? row.members : troubled;
  return (
    <div className="tool">
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

export function nameOfGroup(row: ToolGroupRow): string {
  const said = sayGroup(row.tools.map((tool) => tool.block));
  return text.tool.name(said.verb, said.what, said.failed > 0 ? text.tool.groupFailed(said.failed) : "");
}
