/** Everything that can answer: whether it is ready, what to do when it is not, what it can do, and a try of it. */

import { useCallback, useState } from "react";
import type { AgentEntry } from "../../protocol/wire";
import { asApiError } from "../../transport/api";
import type { BackendEntry, Trial } from "../../transport/api.later";
import { ago, elapsed } from "../../measures";
import { list, said } from "../../sentences";
import { text } from "../../text";
import { places } from "../../text.places";
import { Icon } from "../controls/Icon";
import { Menu } from "../controls/Menu";
import { useMinutes, useSeconds } from "../controls/now";
import { useFresh, useLaterApi } from "../frame/fresh";
import { ScreenFrame } from "../frame/ScreenFrame";
import { ScreenLink } from "../frame/ScreenLink";
import { Trouble } from "../frame/Trouble";
import { Fix, Words } from "../frame/Words";
import type { ScreenProps } from "../screens";
import { usePick, useStore } from "../store";
import { abilitiesOf, adviceOf, inabilitiesOf, processesOf, readyFirst, sayTrial, stateOf, summaryOf, TONES, type Trying } from "./say";

export default function Backends({ listShown, onShowList }: ScreenProps) {
  const api = useLaterApi();
  const load = useCallback(() => api.backends(), [api]);
  const { value, error, loading, again } = useFresh(load);
  return (
    <ScreenFrame
      heading={text.screens.backends}
      lead={places.backends.lead}
      listShown={listShown}
      onShowList={onShowList}
      buttons={
        <button type="button" className="button small" aria-disabled={loading} onClick={loading ? undefined : again}>
          <Icon name="retry" />
          {loading ? places.backends.looking : places.backends.again}
        </button>
      }
    >
      {error && <Trouble heading={places.backends.failed} error={error} onAgain={again} />}
      {!value && loading && (
        <p className="hint" role="status">
          {places.backends.looking}
        </p>
      )}
      {value?.length === 0 && <p className="hint">{places.backends.none}</p>}
      {value && value.length > 0 && (
        <ul className="cards">
          {readyFirst(value).map((backend) => (
            <BackendCard key={backend.name} backend={backend} onTried={again} />
          ))}
        </ul>
      )}
      <p className="screen-foot">
        <ScreenLink to="/processes">{text.screens.processes}</ScreenLink>
        <ScreenLink to="/import">{text.screens.import}</ScreenLink>
      </p>
    </ScreenFrame>
  );
}

function BackendCard({ backend, onTried }: { backend: BackendEntry; onTried: () => void }) {
  const api = useLaterApi();
  const store = useStore();
  const [trying, setTrying] = useState<Trying>();
  const agents = useAgentsOf(backend);
  const state = stateOf(backend, trying);
  const tone = TONES[state];
  const can = abilitiesOf(backend);
  const lacks = inabilitiesOf(backend);

  const run = async (agent: string): Promise<void> => {
    setTrying({ phase: "running", agent, since: Date.now() });
    const trial = await api.tryAgent(agent).catch((cause: unknown): Trial => {
      const { error } = asApiError(cause);
      return { ok: false, text: "", duration_ms: 0, error };
    });
    setTrying({ phase: "done", agent, trial });
    // What was found out may have changed more than this card.
    void store.loadAgents();
    onTried();
  };

  return (
    <li className="card" aria-labelledby={`backend-${backend.name}`}>
      <div className="card-head">
        <h2 id={`backend-${backend.name}`} className="card-heading">
          {backend.title}
        </h2>
        <span className={`card-state is-${tone}`} role="status">
          <span className={`dot is-${tone}`} />
          {trying?.phase === "running" ? <Testing since={trying.since} agent={nameOf(agents, trying.agent)} /> : places.backends.states[state]}
        </span>
        <TryButton agents={agents} busy={trying?.phase === "running"} ready={backend.ready} onTry={(agent) => void run(agent)} />
      </div>
      <p className="card-words">
        <Words>{summaryOf(backend)}</Words>
      </p>
      {!backend.ready && backend.fix && (
        <div className="card-fix">
          <h3>{places.backends.whatToDo}</h3>
          <Fix>{backend.fix}</Fix>
        </div>
      )}
      {trying?.phase === "done" && <Outcome trial={trying.trial} />}
      {!trying && backend.ready && backend.last_error && <LastError error={backend.last_error} />}
      {can.length > 0 && (
        <p className="card-quiet">
          <span className="sr-only">{places.backends.can}: </span>
          {can.join(" · ")}
          {lacks.length > 0 && ` · ${places.backends.lacks(list(...lacks))}`}
        </p>
      )}
      <p className="card-quiet card-users">
        {agents.length === 0 ? places.backends.noAgents : places.backends.agents(list(...agents.map(({ name }) => name)))}
        {backend.processes > 0 && (
          <>
            {" · "}
            <ScreenLink to="/processes">{processesOf(backend)}</ScreenLink>
          </>
        )}
      </p>
    </li>
  );
}

interface Named {
  id: string;
  name: string;
}

/** The names are known to the list of agents; an id that is not there stands for itself. */
function useAgentsOf(backend: BackendEntry): Named[] {
  const known = usePick(({ agents }) => agents.items);
  return backend.agents.map((id) => ({ id, name: nameOf(known, id) }));
}

function nameOf(agents: readonly (Named | AgentEntry)[], id: string): string {
  return agents.find((agent) => agent.id === id)?.name ?? id;
}

interface TryButtonProps {
  agents: readonly Named[];
  busy: boolean;
  ready: boolean;
  onTry: (agent: string) => void;
}

/** Of several agents one is chosen. Where it is known what is missing, trying would only say it again. */
function TryButton({ agents, busy, ready, onTry }: TryButtonProps) {
  const [only, ...others] = agents;
  if (only === undefined || !ready) return null;
  if (others.length === 0) {
    return (
      <button type="button" className="button small" aria-label={places.backends.tryOnly(only.name)} aria-disabled={busy} onClick={busy ? undefined : () => onTry(only.id)}>
        {places.backends.try}
      </button>
    );
  }
  return (
    <Menu
      label={places.backends.try}
      className="button small"
      disabled={busy}
      actions={agents.map(({ id, name }) => ({ label: places.backends.tryOne(name), onSelect: () => onTry(id) }))}
    >
      {places.backends.try}
      <span className="button-more">
        <Icon name="chevron" />
      </span>
    </Menu>
  );
}

function Testing({ since, agent }: { since: number; agent: string }) {
  const now = useSeconds();
  return (
    <>
      <span className="sr-only">{places.backends.testing(agent)}</span>
      <span aria-hidden="true" className="tabular">
        {text.join(places.backends.states.testing, elapsed(now - since))}
      </span>
    </>
  );
}

function Outcome({ trial }: { trial: Trial }) {
  const advice = adviceOf(trial);
  if (trial.ok) {
    return (
      <div className="card-outcome" role="status">
        <p className="is-good">{sayTrial(trial)}</p>
        {trial.text && <blockquote className="card-answer">{trial.text}</blockquote>}
      </div>
    );
  }
  return (
    <div className="card-outcome is-trouble" role="alert">
      <p className="is-bad">{places.backends.tryFailed}</p>
      <p>{sayTrial(trial)}</p>
      {advice && <p className="hint">{advice}</p>}
    </div>
  );
}

function LastError({ error }: { error: { message: string; ts: number } }) {
  const now = useMinutes();
  return (
    <p className="card-quiet">
      {places.backends.lastError(ago(error.ts, now))} <span className="card-last">{said(error.message)}</span>
    </p>
  );
}
