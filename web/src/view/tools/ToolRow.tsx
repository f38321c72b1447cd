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
import { sayTool, stateClass } from "./say";

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
    <div className={`tool ${stateClass(block)}`}>
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
          {block.status === "running" ? (
            <span className="tool-peek mono">{lastOutput(block)}</span>
          ) : block.status === "interrupted" ? (
            text.tool.interruptedMark
          ) : (
            line.result
          )}
        </span>
        {block.truncated && <StateMark icon="warn" words={text.tool.truncated} />}
        {block.status === "ok" && <StateMark icon="check" words={text.tool.ok} />}
      </button>
      {open && (
        <Suspense fallback={null}>
          <ToolBody block={block} kind={line.kind} />
        </Suspense>
      )}
    </div>
  );
}

/** A sign at the end of a line, and the same in words for who does not see it. */
export function StateMark({ icon, words }: { icon: IconName; words: string }) {
  return (
    <span className={`tool-state is-${icon}`} title={words}>
      <Icon name={icon} />
      <span className="sr-only">{words}</span>
    </span>
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
  return text.tool.name(line.verb, line.object, block.truncated ? text.tool.cut(line.result) : line.result);
}
