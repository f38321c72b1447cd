/** Every agent: what it runs on, whether it is ready, whose it is, what is wrong with its file; and what can be done with it. */

import { useCallback, useState } from "react";
import type { Listed, ProjectEntry } from "../../protocol/agents";
import { asApiError } from "../../transport/api";
import { said } from "../../sentences";
import { text } from "../../text";
import { words } from "../../text.agents";
import { Icon } from "../controls/Icon";
import { Menu, type MenuAction } from "../controls/Menu";
import { Confirm } from "../frame/Confirm";
import { SelectField } from "../frame/Fields";
import { useFresh, useLaterApi } from "../frame/fresh";
import { useQuery, withQuery } from "../frame/query";
import { ScreenFrame } from "../frame/ScreenFrame";
import { ScreenLink } from "../frame/ScreenLink";
import { Trouble } from "../frame/Trouble";
import { Words } from "../frame/Words";
import { goTo } from "../route";
import type { ScreenProps } from "../screens";
import { usePick, useStore } from "../store";
import { Review } from "./Review";
import { bySource, stateOf, TONES, UNREADABLE } from "./say";

export function AgentList({ listShown, onShowList }: ScreenProps) {
  const api = useLaterApi();
  const isOwner = usePick(({ session }) => session.session?.roles.includes("admin") === true);
  const loadProjects = useCallback(() => api.projects(), [api]);
  const projects = useFresh(loadProjects).value?.filter(({ exists }) => exists);
  const asked = useQuery("project");
  // Whichever was worked in last is looked at by itself: nobody should have to know that a folder can hold agents.
  const project = asked ?? projects?.[0]?.project ?? null;
  const load = useCallback(() => api.agentsIn(), [api]);
  const { value, error, loading, again } = useFresh(load);
  const groups = bySource(value?.items ?? []);

  return (
    <ScreenFrame
      heading={text.screens.agents}
      lead={words.agents.lead}
      listShown={listShown}
      onShowList={onShowList}
      buttons={
        isOwner && (
          <ScreenLink to="/agents?new" className="button small">
            <Icon name="add" />
            {words.agents.make}
          </ScreenLink>
        )
      }
    >
      {error && <Trouble heading={words.agents.failed} error={error} onAgain={again} />}
      {!value && loading && (
        <p className="hint" role="status">
          {words.agents.loading}
        </p>
      )}
      {value && !isOwner && <p className="hint">{words.agents.forbidden}</p>}
      {value &&
        (["data", "built-in"] as const).map((source) => (
          <section key={source} className="screen-group" aria-labelledby={`agents-${source}`}>
            <h2 id={`agents-${source}`} className="screen-subheading">
              {words.agents.sources[source]}
            </h2>
            {groups[source].length === 0 && source === "data" && isOwner && <p className="hint">{words.agents.noneOfYours}</p>}
            <Cards agents={groups[source]} all={value.items} isOwner={isOwner} onChanged={again} />
          </section>
        ))}
      {value && <ProjectAgents key={project} project={project} projects={projects} isOwner={isOwner} onChanged={again} />}
      <p className="screen-foot">
        <ScreenLink to="/backends">{text.screens.backends}</ScreenLink>
        <ScreenLink to="/missions">{text.screens.missions}</ScreenLink>
      </p>
    </ScreenFrame>
  );
}

interface ProjectAgentsProps {
  project: string | null;
  projects: readonly ProjectEntry[] | undefined;
  isOwner: boolean;
  onChanged: () => void;
}

function ProjectAgents({ project, projects, isOwner, onChanged }: ProjectAgentsProps) {
  const api = useLaterApi();
  const load = useCallback(() => (project === null ? Promise.resolve(null) : api.agentsIn(project)), [api, project]);
  const { value, error, again } = useFresh(load);
  const own = bySource(value?.items ?? []).project;
  const options = (projects ?? []).map((one) => [one.project, one.project] as const);
  return (
    <section className="screen-group" aria-labelledby="agents-project">
      <h2 id="agents-project" className="screen-subheading">
        {words.agents.sources.project}
      </h2>
      {project === null ? (
        <p className="hint">{words.agents.noProjects}</p>
      ) : (
        <>
          <SelectField label={words.agents.ofProject} value={project} options={options} onChange={(chosen) => goTo(withQuery("/agents", { project: chosen }), true)} />
          {error && <Trouble heading={words.agents.otherProject} error={error} onAgain={again} />}
          {value && own.length === 0 && <p className="hint">{words.agents.noneInProject}</p>}
          <Cards
            agents={own}
            all={value?.items ?? []}
            isOwner={isOwner}
            project={project}
            onChanged={() => {
              again();
              onChanged();
            }}
          />
        </>
      )}
    </section>
  );
}

interface CardsProps {
  agents: readonly Listed[];
  all: readonly Listed[];
  isOwner: boolean;
  project?: string;
  onChanged: () => void;
}

function Cards({ agents, ...rest }: CardsProps) {
  if (agents.length === 0) return null;
  return (
    <ul className="cards">
      {agents.map((agent) => (
        <AgentCard key={agent.id} agent={agent} {...rest} />
      ))}
    </ul>
  );
}

type Doing = "nothing" | "asking" | "removing" | "copying" | { refused: string };

function AgentCard({ agent, all, isOwner, project, onChanged }: Omit<CardsProps, "agents"> & { agent: Listed }) {
  const api = useLaterApi();
  const store = useStore();
  const [doing, setDoing] = useState<Doing>("nothing");
  const state = stateOf(agent, all);
  const tone = TONES[state];
  const key = `agent-${agent.source}-${agent.id}`;

  const attempt = async (what: Promise<unknown>, after: () => void): Promise<void> => {
    try {
      await what;
      setDoing("nothing");
      after();
    } catch (cause) {
      setDoing({ refused: said(asApiError(cause).message) });
    }
  };
  const changed = (): void => {
    void store.loadAgents();
    onChanged();
  };
  const copy = (): void => {
    setDoing("copying");
    const made = api.duplicateAgent(agent.id, project);
    void attempt(made, () => {
      void store.loadAgents();
      void made.then(({ id }) => goTo(`/agents/${encodeURIComponent(id)}`));
    });
  };
  const remove = (): void => {
    setDoing("removing");
    void attempt(api.deleteAgent(agent.id), changed);
  };

  const usable = agent.problem === null && agent.trusted;
  const actions: MenuAction[] = [
    ...(usable ? [{ label: words.agents.talk, icon: "add" as const, onSelect: () => goTo(withQuery("/", { agent: agent.id, project })) }] : []),
    ...(isOwner && usable ? [{ label: words.agents.duplicate, icon: "copy" as const, onSelect: copy }] : []),
    ...(isOwner && agent.source === "data" && agent.editable
      ? [{ label: words.agents.remove, icon: "trash" as const, danger: true, onSelect: () => setDoing("asking") }]
      : []),
  ];

  return (
    <li className="card" aria-labelledby={key}>
      <div className="card-head">
        <h3 id={key} className="card-heading">
          {agent.name}
        </h3>
        <span className={`card-state is-${tone}`}>
          <span className={`dot is-${tone}`} />
          {words.agents.states[state]}
        </span>
        {isOwner && agent.editable && (
          <ScreenLink to={`/agents/${encodeURIComponent(agent.id)}`} className="button small">
            <Icon name="edit" />
            {words.agents.edit}
            <span className="sr-only"> {agent.name}</span>
          </ScreenLink>
        )}
        {actions.length > 0 && (
          <Menu label={words.agents.menu(agent.name)} actions={actions}>
            <Icon name="more" />
          </Menu>
        )}
      </div>
      {agent.description && <p className="card-words">{agent.description}</p>}
      <p className="card-quiet">
        <span className="mono">{agent.id}</span>
        {agent.backend !== UNREADABLE && ` · ${text.join(agent.backend, agent.model)}`}
        {state === "ready" && agent.note && agent.note !== "ready" && (
          <>
            {" · "}
            <Words>{agent.note}</Words>
          </>
        )}
      </p>
      {state === "unready" && agent.note && (
        <div className="card-fix">
          <p>
            <Words>{agent.note}</Words>
          </p>
          <p>
            <ScreenLink to="/backends">{words.form.seeBackends}</ScreenLink>
          </p>
        </div>
      )}
      {state === "broken" && (
        <div className="card-outcome is-trouble">
          <p className="is-bad">{words.agents.problem}</p>
          <p>
            <Words>{agent.problem ?? ""}</Words>
          </p>
        </div>
      )}
      {agent.source === "project" && project !== undefined && state !== "broken" && (
        <Review agent={agent} project={project} isOwner={isOwner} onChanged={changed} />
      )}
      {doing === "copying" && (
        <p className="hint" role="status">
          {words.agents.duplicating}
        </p>
      )}
      {typeof doing === "object" && (
        <p className="is-bad" role="alert">
          {doing.refused}
        </p>
      )}
      {(doing === "asking" || doing === "removing") && (
        <Confirm
          heading={words.agents.removeHeading(agent.name)}
          body={words.agents.removeBody}
          yes={doing === "removing" ? words.agents.removing : words.agents.removeYes}
          no={words.agents.cancel}
          busy={doing === "removing"}
          onYes={remove}
          onNo={() => setDoing("nothing")}
        />
      )}
    </li>
  );
}
