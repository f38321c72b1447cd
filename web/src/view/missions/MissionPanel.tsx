/** The mission of a folder as it stands: what it is, who is woken next, what it cost; set, replaced, ended; those before it. */

import { useCallback, useState } from "react";
import type { MissionAgent, MissionView, PastMission } from "../../protocol/agents";
import { asApiError } from "../../transport/api";
import { day } from "../../measures";
import { said } from "../../sentences";
import { text } from "../../text";
import { words } from "../../text.agents";
import { useAgentName } from "../agents";
import { Icon } from "../controls/Icon";
import { useMinutes, useSeconds } from "../controls/now";
import { Confirm } from "../frame/Confirm";
import { useFresh, useLaterApi } from "../frame/fresh";
import { ScreenLink } from "../frame/ScreenLink";
import { Trouble } from "../frame/Trouble";
import { addressOf } from "../route";
import { usePick } from "../store";
import { MissionForm } from "./MissionForm";
import { Overrides } from "./Overrides";

/** Somebody is woken every half minute at most; a change should be seen while one looks. */
const REFRESH_MS = 3_000;

interface MissionPanelProps {
  project: string;
  /** Before a link in it is followed. */
  onFollow?: () => void;
}

export function MissionPanel({ project, onFollow }: MissionPanelProps) {
  const api = useLaterApi();
  const mayChange = usePick(({ session }) => session.session?.roles.includes("decide") === true);
  const load = useCallback(() => api.mission(project), [api, project]);
  const { value, error, again } = useFresh(load, REFRESH_MS);
  const loadPast = useCallback(() => api.missions(project), [api, project]);
  const past = useFresh(loadPast);
  const [writing, setWriting] = useState(false);

  const changed = (): void => {
    setWriting(false);
    again();
    past.again();
  };

  if (value === undefined) {
    if (error) return <Trouble heading={words.missions.panelFailed} error={error} onAgain={again} />;
    return (
      <p className="hint" role="status">
        {words.missions.loading}
      </p>
    );
  }
  return (
    <div className="mission">
      {error && <Trouble heading={words.missions.panelFailed} error={error} onAgain={again} />}
      {value.active && !writing && <Active mission={value} mayChange={mayChange} onFollow={onFollow} onReplace={() => setWriting(true)} onEnded={changed} />}
      {!value.active && !writing && (
        <section className="card is-empty">
          <h2 className="card-heading">{words.missions.noMission}</h2>
          <p className="card-words">{words.missions.explain}</p>
          {mayChange ? (
            <div className="card-bar">
              <button type="button" className="button small primary" onClick={() => setWriting(true)}>
                {words.missions.set}
              </button>
            </div>
          ) : (
            <p className="hint">{words.missions.readOnly}</p>
          )}
        </section>
      )}
      {writing && <MissionForm project={project} before={value.active ? value : null} onSet={changed} onCancel={() => setWriting(false)} />}
      {!writing && mayChange && <Overrides project={project} />}
      {!writing && <History missions={past.value ?? []} onFollow={onFollow} />}
    </div>
  );
}

interface ActiveProps {
  mission: MissionView;
  mayChange: boolean;
  onFollow: (() => void) | undefined;
  onReplace: () => void;
  onEnded: () => void;
}

function Active({ mission, mayChange, onFollow, onReplace, onEnded }: ActiveProps) {
  const api = useLaterApi();
  const now = useMinutes();
  const [ending, setEnding] = useState<"no" | "asking" | "ending" | { refused: string }>("no");
  const over = mission.status === "limit" || mission.status === "budget" ? mission.status : null;
  const tone = over === null ? "live" : "wait";

  const end = async (): Promise<void> => {
    setEnding("ending");
    try {
      await api.clearMission(mission.project);
      setEnding("no");
      onEnded();
    } catch (cause) {
      setEnding({ refused: said(asApiError(cause).message) });
    }
  };

  return (
    <section className="card" aria-label={words.missions.active}>
      <div className="card-head">
        <p className={`card-state is-${tone}`}>
          <span className={`dot is-${tone}`} />
          {over === null ? words.missions.active : words.missions.over[over]}
        </p>
        <span className="head-space" />
        {mayChange && (
          <>
            <button type="button" className="button small" onClick={onReplace}>
              {words.missions.replace}
            </button>
            <button type="button" className="button small danger" onClick={() => setEnding("asking")}>
              {words.missions.end}
            </button>
          </>
        )}
      </div>
      <p className="mission-text">{mission.text}</p>
      <p className="card-quiet tabular">
        {text.join(
          mission.created_at !== null && words.missions.since(mission.created_at, now),
          words.missions.woken(mission.triggered, mission.limit),
          words.missions.spent(mission.spent_usd, mission.budget_usd),
        )}
      </p>
      <h2 className="card-subheading">{words.missions.agents}</h2>
      {mission.agents.length === 0 ? (
        <p className="hint">{words.missions.noAgents}</p>
      ) : (
        <ul className="entries">
          {mission.agents.map((agent) => (
            <AgentRow key={agent.agent} agent={agent} onFollow={onFollow} />
          ))}
        </ul>
      )}
      {ending !== "no" && (
        <Confirm
          heading={words.missions.endHeading}
          body={words.missions.endBody}
          yes={ending === "ending" ? words.missions.ending : words.missions.endYes}
          no={words.missions.cancel}
          busy={ending === "ending"}
          refusal={typeof ending === "object" ? ending.refused : null}
          onYes={() => void end()}
          onNo={() => setEnding("no")}
        />
      )}
    </section>
  );
}

function AgentRow({ agent, onFollow }: { agent: MissionAgent; onFollow: (() => void) | undefined }) {
  const now = useSeconds();
  const name = useAgentName(agent.agent);
  const waits = agent.status === "waiting" || agent.status === "no_prompt" || agent.status === "unknown_agent" || agent.status === "deleted";
  return (
    <li className="entry">
      <span className={agent.status === "busy" ? "entry-icon is-live" : "entry-icon"}>
        <Icon name="spark" />
      </span>
      <div className="entry-words">
        <p className="entry-title">{name}</p>
        <p className={waits ? "is-wait tabular" : "entry-command tabular"}>
          {agent.next_due_at === null ? words.missions.standing[agent.status] : words.missions.due(agent.next_due_at - now)}
        </p>
        <p className="hint tabular">{text.join(words.missions.times(agent.triggered), words.missions.after(agent.idle_interval_s))}</p>
        {agent.idle_prompt && (
          <details className="quiet-details">
            <summary>{words.missions.prompt}</summary>
            <p className="mission-text">{agent.idle_prompt}</p>
          </details>
        )}
      </div>
      {agent.conversation !== null && agent.status !== "deleted" && (
        <ScreenLink to={addressOf(agent.conversation)} className="button small" {...(onFollow ? { onFollow } : {})}>
          {words.missions.conversation}
          <span className="sr-only">{words.missions.conversationMore(name)}</span>
        </ScreenLink>
      )}
    </li>
  );
}

function History({ missions, onFollow }: { missions: readonly PastMission[]; onFollow: (() => void) | undefined }) {
  const former = missions.filter(({ active }) => !active);
  if (former.length === 0) return null;
  return (
    <details className="more-details">
      <summary>{words.missions.history(former.length)}</summary>
      <ul className="entries">
        {former.map((mission) => (
          <Former key={mission.mission} mission={mission} onFollow={onFollow} />
        ))}
      </ul>
    </details>
  );
}

function Former({ mission, onFollow }: { mission: PastMission; onFollow: (() => void) | undefined }) {
  const now = useMinutes();
  const days = words.missions.ended(day(mission.created_at, now), day(mission.ended_at ?? now, now));
  return (
    <li className="entry">
      <div className="entry-words">
        <p className="mission-text clamp">{mission.text}</p>
        <p className="hint tabular">{text.join(days, words.missions.times(mission.triggered))}</p>
        <p className="former-links">
          {Object.entries(mission.conversations).map(([agent, conversation]) => (
            <FormerLink key={agent} agent={agent} conversation={conversation} onFollow={onFollow} />
          ))}
        </p>
      </div>
    </li>
  );
}

function FormerLink({ agent, conversation, onFollow }: { agent: string; conversation: string; onFollow: (() => void) | undefined }) {
  const name = useAgentName(agent);
  return (
    <ScreenLink to={addressOf(conversation)} {...(onFollow ? { onFollow } : {})}>
      {words.missions.conversationOf(name)}
    </ScreenLink>
  );
}
