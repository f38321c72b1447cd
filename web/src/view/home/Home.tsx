/** The page without a conversation: write the first message, choose who gets it and where it works. */

import { lazy, Suspense, useEffect, useRef, useState } from "react";
import type { AgentEntry } from "../../protocol/wire";
import { said, text } from "../../text";
import { later } from "../../text.later";
import { contentOf, useAttachments } from "../composer/attachments";
import { ComposerBox, type ComposerHandle } from "../composer/ComposerBox";
import { ModeMenu } from "../composer/Mode";
import { Icon } from "../controls/Icon";
import { Mark } from "../controls/Mark";
import { Menu } from "../controls/Menu";
import { ScreenLink } from "../frame/ScreenLink";
import { HeaderFrame } from "../header/Header";
import { onAsked } from "../keys";
import { addressOf, goTo } from "../route";
import type { ScreenProps } from "../screens";
import type { Params } from "../settings/params";
import { SettingsForm } from "../settings/Settings";
import { usePick, useStore } from "../store";

const ImportCard = lazy(() => import("../imports/ImportCard"));

/** Whoever has more has settled in. */
const FEW_CONVERSATIONS = 5;

export default function Home({ listShown, onShowList }: ScreenProps) {
  const store = useStore();
  const agents = usePick((snapshot) => snapshot.agents);
  const isEmpty = usePick(({ list }) => list.phase === "ready" && list.byId.size === 0);
  const isNew = usePick(
    ({ list, session }) =>
      list.phase === "ready" && list.byId.size < FEW_CONVERSATIONS && session.session?.roles.includes("admin") === true,
  );
  const [dismissed, setDismissed] = useKept("palaver.import.dismissed", "");
  // It stays while the conversations it brings come in.
  const [offered, setOffered] = useState(false);
  if (isNew && !offered) setOffered(true);
  const trouble = usePick(({ connection }) => connection.kind === "reconnecting" || connection.kind === "offline");
  const [value, setValue] = useKept("palaver.fresh", "");
  const [chosen, setChosen] = useKept("palaver.agent", "");
  const [mode, setMode] = useState("ask");
  const [params, setParams] = useState<Params>({});
  const [settings, setSettings] = useState(false);
  const [folder, setFolder] = useState("");
  const [state, setState] = useState<"idle" | "starting" | { failed: string }>("idle");
  const attachments = useAttachments("");
  const box = useRef<ComposerHandle>(null);

  useEffect(() => onAsked("compose", () => box.current?.focus()), []);

  const agent = agents.items.find((known) => known.id === chosen) ?? agents.items.find((known) => known.ready) ?? agents.items[0];

  const start = async (): Promise<void> => {
    if (state === "starting") return;
    setState("starting");
    try {
      const created = await store.create({
        message: contentOf(value, attachments.items),
        ...(agent ? { agent: agent.id } : {}),
        ...(folder.trim() === "" ? {} : { project: folder.trim() }),
        params: { ...params, ...(mode === "ask" ? {} : { mode }) },
      });
      setValue("");
      attachments.clear();
      goTo(addressOf(created.conversation));
    } catch (error) {
      setState({ failed: error instanceof Error && error.message ? said(error.message) : later.fresh.failed });
    }
  };

  return (
    <>
      <HeaderFrame listShown={listShown} onShowList={onShowList} />
      <main className="home">
        <div className="home-column">
          <Mark />
          <h1 className="home-heading">{later.fresh.heading}</h1>
          <div className="composer-frame" data-region>
            <ComposerBox
              ref={box}
              value={value}
              onChange={setValue}
              placeholder={text.composer.placeholderFresh}
              attachments={attachments}
              autoFocus={!matchMedia("(pointer: coarse)").matches}
              onSend={() => void start()}
              notice={trouble ? text.composer.offline : null}
              tools={
                <>
                  <AgentMenu agents={agents.items} phase={agents.phase} agent={agent} onChoose={setChosen} />
                  <ModeMenu mode={mode} onChoose={setMode} />
                  <button
                    type="button"
                    className="icon-button"
                    aria-label={later.settings.freshHeading}
                    title={later.settings.freshHeading}
                    onClick={() => setSettings(true)}
                  >
                    <Icon name="sliders" />
                  </button>
                </>
              }
              buttons={(canSend) => (
                <button
                  type="button"
                  className="round-button"
                  aria-label={text.composer.send}
                  title={text.composer.send}
                  disabled={!canSend || state === "starting"}
                  onClick={() => void start()}
                >
                  <Icon name="send" />
                </button>
              )}
            />
          </div>
          <div className="home-folder">
            <label htmlFor="folder">{later.fresh.folder}</label>
            <input
              id="folder"
              className="bare-field mono"
              placeholder={later.fresh.folderDefault}
              title={later.fresh.folderHint}
              spellCheck={false}
              autoCapitalize="off"
              value={folder}
              onChange={(event) => setFolder(event.target.value)}
            />
          </div>
          {state === "starting" && (
            <p className="hint" role="status">
              {later.fresh.creating}
            </p>
          )}
          {typeof state === "object" && (
            <p className="is-bad" role="alert">
              {state.failed}
            </p>
          )}
          {settings && (
            <SettingsForm
              heading={later.settings.freshHeading}
              params={params}
              agent={agent?.id ?? ""}
              used={null}
              onSave={(patch, agentId) => {
                setParams(Object.fromEntries(Object.entries({ ...params, ...patch }).filter(([, value]) => value !== null)));
                if (agentId) setChosen(agentId);
              }}
              onClose={() => setSettings(false)}
            />
          )}
          <AgentNote agent={agent} phase={agents.phase} />
          {offered && dismissed === "" && (
            <Suspense fallback={null}>
              <ImportCard onDismiss={() => setDismissed("yes")} />
            </Suspense>
          )}
          {isEmpty && (
            <ul className="tips">
              {later.fresh.tips.map((tip) => (
                <li key={tip}>{tip}</li>
              ))}
            </ul>
          )}
        </div>
      </main>
    </>
  );
}

interface AgentMenuProps {
  agents: readonly AgentEntry[];
  phase: string;
  agent: AgentEntry | undefined;
  onChoose: (id: string) => void;
}

function AgentMenu({ agents, phase, agent, onChoose }: AgentMenuProps) {
  if (agents.length === 0) return phase === "loading" ? <span className="hint">{later.fresh.loadingAgents}</span> : null;
  return (
    <Menu
      label={`${later.fresh.agent}: ${agent?.name ?? ""}`}
      className="button quiet small"
      align="start"
      actions={agents.map((known) => ({
        label: known.name,
        checked: known.id === agent?.id,
        hint: known.ready ? text.join(known.backend, known.model) : (known.note ?? ""),
        onSelect: () => onChoose(known.id),
      }))}
    >
      <Icon name="spark" />
      <span>{agent?.name}</span>
    </Menu>
  );
}

function AgentNote({ agent, phase }: { agent: AgentEntry | undefined; phase: string }) {
  if (phase === "failed") return <p className="hint">{later.fresh.agentsFailed}</p>;
  if (phase === "ready" && !agent?.ready) {
    return (
      <p className="home-note">
        <span className="is-wait">{agent?.note ? said(agent.note) : later.backends.needed}</span>{" "}
        <ScreenLink to="/backends">{later.backends.see}</ScreenLink>
      </p>
    );
  }
  return agent?.description ? <p className="hint home-note">{agent.description}</p> : null;
}

/** A value that survives leaving this page, on this device. */
function useKept(key: string, initial: string): [string, (value: string) => void] {
  const [value, setValue] = useState(() => {
    try {
      return localStorage.getItem(key) ?? initial;
    } catch {
      return initial;
    }
  });
  const keep = (next: string): void => {
    setValue(next);
    try {
      localStorage.setItem(key, next);
    } catch {
      // No storage: it lasts as long as this page.
    }
  };
  return [value, keep];
}
