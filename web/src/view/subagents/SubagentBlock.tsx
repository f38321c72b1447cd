/** A subagent in the transcript of whom it works for: one line with its state; opens to its own transcript, in place. */

import type { Subagent, ToolBlock } from "../../protocol/events.gen";
import { said } from "../../sentences";
import { work } from "../../text.work";
import { useAgentName } from "../agents";
import { Icon } from "../controls/Icon";
import { ScreenLink } from "../frame/ScreenLink";
import { addressOf } from "../route";
import { useDisclosed } from "../store";
import { toneClass } from "../tools/say";
import { LiveTime } from "../transcript/Thinking";
import { Peek } from "./Peek";
import { firstLine, sayState, stateOf } from "./say";
import { StopChild } from "./StopChild";
import { SubagentTree } from "./SubagentTree";
import { useWaiting } from "./waiting";

interface SubagentBlockProps {
  place: string;
  block: ToolBlock;
  child: Subagent;
}

const STATE_ICON = { failed: "warn", cancelled: "cut", waiting: "shield" } as const;

export function SubagentBlock({ place, block, child }: SubagentBlockProps) {
  const [open, setOpen] = useDisclosed(place);
  const name = useAgentName(child.agent);
  const waiting = useWaiting(child.conversation);
  const state = stateOf(child, waiting);
  const running = child.status === "running";
  const icon = state in STATE_ICON ? STATE_ICON[state as keyof typeof STATE_ICON] : "users";
  return (
    <div className={`tool work ${toneClass(TONE[state])}`}>
      <div className="work-head">
        <button type="button" className="tool-line" aria-expanded={open} onClick={() => setOpen(!open)}>
          <span className={running && state !== "waiting" ? "tool-icon alive" : "tool-icon"}>
            <Icon name={icon} />
          </span>
          <span className="tool-verb">{name}</span>
          <span className="tool-object">{firstLine(child.task)}</span>
          {running && child.started_at !== null && <LiveTime since={child.started_at} />}
          <span className="tool-chevron">
            <Icon name="chevron" />
          </span>
          <span className="tool-result tabular">{sayState(child, waiting)}</span>
        </button>
        {running && <StopChild conversation={child.conversation} agent={name} />}
      </div>
      <SubagentTree conversation={child.conversation} agent={name} status={child.status} />
      {open && (
        <div className="tool-body">
          <Peek conversation={child.conversation} agent={name} />
          {block.error && <p className="tool-error">{said(block.error.message)}</p>}
          <p className="work-foot">
            <ScreenLink to={addressOf(child.conversation)}>{work.subagent.open}</ScreenLink>
          </p>
        </div>
      )}
    </div>
  );
}

/** The tones of tool rows, which say the same by colour. */
const TONE = {
  starting: "running",
  running: "running",
  waiting: "waiting",
  completed: "ok",
  failed: "error",
  cancelled: "interrupted",
} as const;
