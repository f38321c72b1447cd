/** A tool call: verb, object and result in one line; opens to what went in, what came out and how long it took. */

import { memo, Suspense } from "react";
import { kindOf } from "../../model/toolkind";
import type { ToolBlock } from "../../protocol/events.gen";
import { text } from "../../text";
import { Icon, type IconName } from "../controls/Icon";
import { FinishCard, ToolBody, WorkRow } from "../later";
import { visible } from "../controls/visible";
import { useDisclosed } from "../store";
import { LiveTime } from "../transcript/Thinking";
import { usePlanIsOpen } from "./plans";
import { isUnanswered, sayTool } from "./say";

export interface ToolRowProps {
  place: string;
  block: ToolBlock;
}

const STATE_ICON: Partial<Record<ToolBlock["status"], IconName>> = {
  error: "warn",
  denied: "close",
  interrupted: "cut",
  waiting: "shield",
};

export const ToolRow = memo(function ToolRow(props: ToolRowProps) {
  const plain = <PlainToolRow {...props} />;
  const kind = kindOf(props.block.name);
  if (kind !== "task" && kind !== "message" && kind !== "finish") return plain;
  return <Suspense fallback={plain}>{kind === "finish" ? <FinishCard {...props} /> : <WorkRow {...props} />}</Suspense>;
});

export function PlainToolRow({ place, block }: ToolRowProps) {
  const line = sayTool(block);
  const [open, setOpen] = useDisclosed(place, usePlanIsOpen(block.call, line.kind === "plan"));
  const alive = block.status === "running" || block.status === "input";
  return (
    <div className={`tool is-${isUnanswered(block) ? "denied" : block.status}`}>
      <button type="button" className="tool-line" aria-expanded={open} onClick={() => setOpen(!open)}>
        <span className={alive ? "tool-icon alive" : "tool-icon"}>
          <Icon name={line.kind === "ask" ? line.icon : (STATE_ICON[block.status] ?? line.icon)} />
        </span>
        <span className="tool-verb">{line.verb}</span>
        <span className={line.isCode ? "tool-object mono" : "tool-object"}>{line.object}</span>
        {block.status === "running" && block.started_at !== null && <LiveTime since={block.started_at} />}
        <span className="tool-chevron">
          <Icon name="chevron" />
        </span>
        <span className="tool-result">
          {block.status === "running" ? <span className="tool-peek mono">{lastOutput(block)}</span> : line.result}
        </span>
      </button>
      {open && (
        <Suspense fallback={null}>
          <ToolBody block={block} kind={line.kind} />
        </Suspense>
      )}
    </div>
  );
}

/** The newest line a running call printed: enough to see that it moves. */
function lastOutput(block: ToolBlock): string {
  const tail = block.output.slice(-400).trimEnd();
  const line = tail.slice(tail.lastIndexOf("\n") + 1);
  return visible(line.replace(/\u001b\[[0-9;?]*[ -/]*[@-~]/g, "").replace(/.*\r/, ""));
}

export function nameOfTool(block: ToolBlock): string {
  const line = sayTool(block);
  return text.tool.name(line.verb, line.object, line.result);
}
