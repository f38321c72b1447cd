/**
 * What a project's agent would be allowed, shown before it is trusted: every program it starts, every server, every tool, and
 * all it is told. The button is beneath it, and what it trusts is what is shown, not what the file has become meanwhile.
 */

import { useCallback, useState, type ReactNode } from "react";
import type { AgentShown, Listed, ServerShown } from "../../protocol/agents";
import { asApiError } from "../../transport/api";
import { money } from "../../measures";
import { said } from "../../sentences";
import { text } from "../../text";
import { words } from "../../text.agents";
import { visible } from "../controls/visible";
import { useFresh, useLaterApi } from "../frame/fresh";
import { Trouble } from "../frame/Trouble";
import { shortHash } from "./say";
import { lineOf } from "./words";

interface ReviewProps {
  agent: Listed;
  project: string;
  isOwner: boolean;
  onChanged: () => void;
}

export function Review({ agent, project, isOwner, onChanged }: ReviewProps) {
  const [open, setOpen] = useState(false);
  return (
    <>
      {!agent.trusted && <p className="card-words">{words.agents.inert}</p>}
      <details className="review" onToggle={(event) => setOpen(event.currentTarget.open)}>
        <summary>
          {agent.trusted ? words.agents.looked : words.agents.look}
          <span className="sr-only">: {agent.name}</span>
        </summary>
        {open && <Opened agent={agent} project={project} isOwner={isOwner} onChanged={onChanged} />}
      </details>
    </>
  );
}

function Opened({ agent, project, isOwner, onChanged }: ReviewProps) {
  const api = useLaterApi();
  const { id } = agent;
  const load = useCallback(() => api.agent(id, project), [api, id, project]);
  const { value, error, again } = useFresh(load);
  const [doing, setDoing] = useState<"nothing" | "trusting" | { refused: string }>("nothing");

  const judge = async (hash: string | null): Promise<void> => {
    setDoing("trusting");
    try {
      await api.trustAgent(project, id, hash);
      setDoing("nothing");
    } catch (cause) {
      const refused = asApiError(cause);
      setDoing({ refused: text.join(said(refused.message), refused.error.code === "conflict" && words.agents.changedMeanwhile) });
    }
    again();
    onChanged();
  };

  if (error) return <Trouble heading={words.agents.lookFailed} error={error} onAgain={again} />;
  // Another agent of the same id may have come meanwhile: that one is not what is trusted here.
  if (value === undefined || value.source !== "project") return <p className="hint">{words.agents.loading}</p>;
  return (
    <div className="review-body">
      <Allowed agent={value} />
      {typeof doing === "object" && (
        <p className="is-bad" role="alert">
          {doing.refused}
        </p>
      )}
      {value.hash !== null && <p className="hint">{value.trusted ? words.agents.trusted(shortHash(value.hash)) : words.agents.trustBody(shortHash(value.hash))}</p>}
      {isOwner && (
        <div className="card-bar">
          <button
            type="button"
            className={value.trusted ? "button small" : "button small primary"}
            aria-disabled={doing === "trusting"}
            onClick={doing === "trusting" ? undefined : () => void judge(value.trusted ? null : value.hash)}
          >
            {doing === "trusting" ? words.agents.trusting : value.trusted ? words.agents.untrust : words.agents.trust}
          </button>
        </div>
      )}
    </div>
  );
}

function Allowed({ agent }: { agent: AgentShown }) {
  const say = words.agents.review;
  const names = Object.keys(agent.environment);
  return (
    <dl className="facts">
      {agent.command.length > 0 && <Fact name={say.command}>{<Code>{lineOf(agent.command)}</Code>}</Fact>}
      {names.length > 0 && <Fact name={say.environment}>{<Code>{names.join(", ")}</Code>}</Fact>}
      <Fact name={say.backend}>{text.join(agent.backend, agent.model)}</Fact>
      {agent.mcp_servers.length > 0 && (
        <Fact name={say.servers}>
          <ul>
            {agent.mcp_servers.map((server) => (
              <li key={server.name}>
                <Server server={server} />
              </li>
            ))}
          </ul>
        </Fact>
      )}
      <Fact name={say.tools}>{agent.tools.length > 0 ? <Code>{agent.tools.join(", ")}</Code> : say.toolsAll}</Fact>
      <Fact name={say.allowed}>{agent.allowed_tools.length > 0 ? <Code>{agent.allowed_tools.join(", ")}</Code> : say.allowedNone}</Fact>
      {agent.policy.length > 0 && (
        <Fact name={say.rules}>
          <ul>
            {agent.policy.map(({ tool, match, decision }, place) => (
              <li key={place}>
                {text.join(words.form.decisions[decision] ?? decision, visible(tool), match && visible(match))}
              </li>
            ))}
          </ul>
        </Fact>
      )}
      <Fact name={say.mode}>{agent.mode === null ? say.modeNone : (text.composer.modes[agent.mode] ?? agent.mode)}</Fact>
      <Fact name={say.spend}>{agent.spend_limit_usd === null ? say.spendNone : money(agent.spend_limit_usd)}</Fact>
      {agent.idle_prompt && <Fact name={say.idle}>{visible(agent.idle_prompt)}</Fact>}
      <Fact name={say.prompt}>
        {agent.system_prompt ? (
          <pre className="review-prompt" tabIndex={0} aria-label={words.form.prompt}>
            {visible(agent.system_prompt)}
          </pre>
        ) : (
          say.promptNone
        )}
      </Fact>
    </dl>
  );
}

function Server({ server }: { server: ServerShown }) {
  const secrets = Object.keys(server.url === null ? server.environment : server.headers);
  return (
    <>
      {visible(server.name)}: <Code>{server.url ?? lineOf(server.command)}</Code>
      {secrets.length > 0 && (
        <>
          {" "}
          <Code>{secrets.join(", ")}</Code>
        </>
      )}
      {server.trusted && ` (${words.agents.review.serverTrusted})`}
    </>
  );
}

function Fact({ name, children }: { name: string; children: ReactNode }) {
  return (
    <div>
      <dt>{name}</dt>
      <dd>{children}</dd>
    </div>
  );
}

function Code({ children }: { children: string }) {
  return <code className="code-word">{visible(children)}</code>;
}
