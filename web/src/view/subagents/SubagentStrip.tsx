/** Several subagents at once: one line above the composer; opens to each of them, with a way to stop it. */

import { isBelow } from "../../model/attention";
import type { Subagent } from "../../protocol/events.gen";
import { elapsed } from "../../measures";
import { work } from "../../text.work";
import { useAgentName } from "../agents";
import { Icon } from "../controls/Icon";
import { useSeconds } from "../controls/now";
import { ScreenLink } from "../frame/ScreenLink";
import { addressOf } from "../route";
import { useDisclosed, usePick, usePicked } from "../store";
import { firstLine, sayTogether, stateOf } from "./say";
import { StopChild } from "./StopChild";
import { useWaiting } from "./waiting";
import "../../style/work.css";

const NONE: readonly Subagent[] = [];

export default function SubagentStrip({ id }: { id: string }) {
  const running = (usePicked(id, ({ state }) => state.subagents) ?? NONE).filter((child) => child.status === "running");
  const waiting = usePick(({ requests, list }) => requests.items.filter((item) => isBelow(item, id, list.byId)).length);
  const [open, setOpen] = useDisclosed(`subagents:${id}`);
  if (running.length < 2) return null;
  return (
    <section className="queue strip" aria-label={work.subagent.strip} data-region tabIndex={-1}>
      <button type="button" className="strip-line" aria-expanded={open} onClick={() => setOpen(!open)}>
        <span className="tool-icon alive">
          <Icon name="users" />
        </span>
        <span className={waiting > 0 ? "is-wait" : undefined}>{sayTogether(running.length, waiting)}</span>
        <span className="tool-chevron">
          <Icon name="chevron" />
        </span>
      </button>
      {open && (
        <ul className="queue-list">
          {running.map((child) => (
            <OneAtWork key={child.conversation} child={child} />
          ))}
        </ul>
      )}
    </section>
  );
}

function OneAtWork({ child }: { child: Subagent }) {
  const now = useSeconds();
  const name = useAgentName(child.agent);
  const state = stateOf(child, useWaiting(child.conversation));
  return (
    <li className="queue-item">
      <ScreenLink className="strip-name" to={addressOf(child.conversation)}>
        {name}
      </ScreenLink>
      <span className="queue-text ellipsis">{firstLine(child.task)}</span>
      <span className={state === "waiting" ? "queue-state is-wait" : "queue-state tabular"}>
        {state === "waiting" ? work.subagent.states.waiting : elapsed(now - (child.started_at ?? now))}
      </span>
      <StopChild conversation={child.conversation} agent={name} />
    </li>
  );
}
