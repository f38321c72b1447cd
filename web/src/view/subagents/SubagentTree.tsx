/** The subagents of a subagent, at any depth, each with its state and a way to its conversation. */

import { useCallback } from "react";
import { type Descendant, descendantsOf } from "../../model/descendants";
import { text } from "../../text";
import { work } from "../../text.work";
import { useAgentName } from "../agents";
import { useConversationId } from "../conversation/scope";
import { Icon, type IconName } from "../controls/Icon";
import { useFresh, useLaterApi } from "../frame/fresh";
import { ScreenLink } from "../frame/ScreenLink";
import { addressOf } from "../route";
import { usePick, usePicked } from "../store";
import { firstLine, stateOfRow, type SubagentState } from "./say";
import { useWaiting } from "./waiting";

const ICONS: Record<SubagentState, IconName> = {
  starting: "users",
  running: "users",
  waiting: "shield",
  completed: "check",
  failed: "warn",
  cancelled: "cut",
};

interface SubagentTreeProps {
  conversation: string;
  agent: string;
  /** Changes when there may be more of them than was heard. */
  status: string;
}

export function SubagentTree({ conversation, agent, status }: SubagentTreeProps) {
  const here = useConversationId();
  const root = usePicked(here, ({ state }) => state.parent?.root ?? null) ?? here;
  const api = useLaterApi();
  // Those that began before this page was opened are not in the list; what becomes of them is.
  const load = useCallback(() => api.descendants(root), [api, root, status]);
  const { value } = useFresh(load);
  const byId = usePick(({ list }) => list.byId);
  const tree = descendantsOf(conversation, byId.values(), value ?? []);
  return tree.length > 0 && <Level members={tree} label={work.subagent.below(agent)} />;
}

function Level({ members, label }: { members: readonly Descendant[]; label: string }) {
  return (
    <ul className="subagent-tree" aria-label={label}>
      {members.map((member) => (
        <Member key={member.row.id} member={member} />
      ))}
    </ul>
  );
}

function Member({ member: { row, children } }: { member: Descendant }) {
  const name = useAgentName(row.agent);
  const state = stateOfRow(row, useWaiting(row.id));
  return (
    <li className={`is-${state}`}>
      <span className="subagent-line">
        <span className={state === "running" ? "tool-icon alive" : "tool-icon"}>
          <Icon name={ICONS[state]} />
        </span>
        <ScreenLink to={addressOf(row.id)}>{name}</ScreenLink>
        <span className="subagent-task">{firstLine(row.title || text.list.untitled)}</span>
        <span className="subagent-state">{work.subagent.states[state]}</span>
      </span>
      {children.length > 0 && <Level members={children} label={work.subagent.below(name)} />}
    </li>
  );
}
