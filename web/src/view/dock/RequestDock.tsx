/**
 * What waits for a person, above the composer: the oldest first, one at a time; the conversation's own requests, and those of
 * the subagents that work for it. It never takes the focus.
 */

import { useState } from "react";
import { isBelow } from "../../model/attention";
import type { Request } from "../../protocol/events.gen";
import { asking } from "../../text.asking";
import { work } from "../../text.work";
import { useAgentName } from "../agents";
import { Icon } from "../controls/Icon";
import { ScreenLink } from "../frame/ScreenLink";
import { addressOf } from "../route";
import { usePick, usePicked } from "../store";
import { labelOf, RequestCard } from "./RequestCard";
import { Together } from "./Together";

const NONE: readonly Request[] = [];

interface Asked {
  conversation: string;
  agent: string;
  request: Request;
}

export default function RequestDock({ id }: { id: string }) {
  const agent = usePicked(id, ({ state }) => state.agent) ?? "";
  const requests = usePicked(id, ({ state }) => state.requests) ?? NONE;
  const paused = usePicked(id, ({ state }) => state.status === "paused") ?? false;
  const own = requests.filter((request) => request.status === "open");
  const open = [...own.map((request): Asked => ({ conversation: id, agent: request.agent ?? agent, request })), ...useBelow(id)];
  open.sort((one, other) => one.request.ts - other.request.ts);
  const waiting = own.filter((request) => request.kind === "approval" && request.call !== null);
  const [wanted, setWanted] = useState<string | null>(null);
  const at = Math.max(
    0,
    open.findIndex(({ request }) => request.id === wanted),
  );
  const asked = open[at];
  if (!asked) return null;
  const { request } = asked;
  const turn = (by: number): void => setWanted(open[(at + by + open.length) % open.length]?.request.id ?? null);
  return (
    <section className="request" aria-label={labelOf(request)} data-region tabIndex={-1}>
      {open.length > 1 && (
        <div className="request-place">
          <button type="button" className="icon-button small" aria-label={asking.approval.earlier} onClick={() => turn(-1)}>
            <Icon name="back" />
          </button>
          <span className="tabular">{asking.approval.place(at + 1, open.length)}</span>
          <button type="button" className="icon-button small" aria-label={asking.approval.later} onClick={() => turn(1)}>
            <Icon name="chevron" />
          </button>
        </div>
      )}
      {paused && waiting.length > 1 && (
        <Together key={waiting.map((one) => one.id).join()} id={id} requests={waiting} shown={request.id} onShow={setWanted} />
      )}
      {asked.conversation === id ? <Own key={request.id} {...asked} /> : <Subagents key={request.id} {...asked} />}
    </section>
  );
}

/** What the subagents of a conversation ask, at any depth. */
function useBelow(id: string): Asked[] {
  const items = usePick((snapshot) => snapshot.requests.items);
  const byId = usePick(({ list }) => list.byId);
  return items.filter((item) => isBelow(item, id, byId));
}

function Own({ conversation, agent, request }: Asked) {
  return <RequestCard id={conversation} agent={useAgentName(agent)} request={request} />;
}

function Subagents({ conversation, agent, request }: Asked) {
  const name = useAgentName(agent);
  return (
    <>
      <RequestCard id={conversation} agent={work.subagent.forThis(name)} request={request} />
      <p className="request-from">
        <ScreenLink to={addressOf(conversation)}>{work.subagent.openOf(name)}</ScreenLink>
      </p>
    </>
  );
}
