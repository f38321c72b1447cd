/** The page without a conversation: write the first message, choose who gets it and where it works. */

import { lazy, Suspense, useCallback, useEffect, useRef, useState } from "react";
import type { Listed } from "../../protocol/agents";
import type { Accepted } from "../../protocol/events.gen";
import type { AgentEntry } from "../../protocol/wire";
import { asApiError } from "../../transport/api";
import { said, shortPaths } from "../../sentences";
import { text } from "../../text";
import { later } from "../../text.later";
import { places } from "../../text.places";
import { contentOf, useAttachments } from "../composer/attachments";
import { ComposerBox, type ComposerHandle } from "../composer/ComposerBox";
import { ModeMenu } from "../composer/Mode";
import { Icon } from "../controls/Icon";
import { Mark } from "../controls/Mark";
import { Menu } from "../controls/Menu";
import { ScreenLink } from "../frame/ScreenLink";
import { useFresh, useLaterApi } from "../frame/fresh";
import { useQuery, withQuery } from "../frame/query";
import { HeaderFrame } from "../header/Header";
import { onAsked } from "../keys";
import { addressOf, goTo } from "../route";
import type { ScreenProps } from "../screens";
import type { Params } from "../settings/params";
import { SettingsForm } from "../settings/Settings";
import { usePick, useStore } from "../store";
import { DEMO, FirstSteps } from "./FirstSteps";

const ImportCard = lazy(() => import("../imports/ImportCard"));
const FolderDialog = lazy(() => import("./FolderDialog"));

/** Whoever has more has settled in. */
const FEW_CONVERSATIONS = 5;

export default function Home({ listShown, onShowList }: ScreenProps) {
  const store = useStore();
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
  // Until one is chosen, the agent's own holds.
  const [mode, setMode] = useState<string | null>(null);
  const [params, setParams] = useState<Params>({});
  const [settings, setSettings] = useState(false);
  const [prompt, words] = [useQuery("prompt"), useQuery("text")];
  const wanted = { agent: useQuery("agent"), folder: useQuery("project"), text: prompt ?? words };
  const [folder, setFolder] = useState(wanted.folder ?? "");
  const [picked, setPicked] = useState(wanted.agent);
  const [state, setState] = useState<"idle" | "starting" | { failed: string }>("idle");
  const attachments = useAttachments("");
  const box = useRef<ComposerHandle>(null);
  const field = useRef<HTMLInputElement>(null);
  const [browsing, setBrowsing] = useState(false);

  useEffect(() => onAsked("compose", () => box.current?.focus()), []);
  useEffect(() => {
    if (wanted.text === null && wanted.folder === null && wanted.agent === null) return;
    if (wanted.text !== null) setValue(wanted.text);
    if (wanted.folder !== null) setFolder(wanted.folder);
    if (wanted.agent !== null) setPicked(wanted.agent);
    // Asked for once: a reload must not ask again over what was written since.
    goTo("/", true);
  }, [wanted.text, wanted.folder, wanted.agent, setValue]);

  const place = usePlace(folder);
  const { agents, untrusted } = place;
  // Who was shown the demo did not choose it for their work.
  const lastUsed = place.lastUsed === DEMO && chosen !== DEMO ? null : place.lastUsed;
  const choice = [picked, lastUsed, chosen].map((id) => agents.items.find((known) => known.id === id)).find((known) => known && !known.problem);
  const agent = choice ?? agents.items.find((known) => known.ready) ?? agents.items[0];
  useEffect(() => {
    if (lastUsed !== null) setChosen(lastUsed);
  }, [lastUsed]);
  const choose = (id: string): void => {
    setPicked(id);
    setChosen(id);
  };

  const start = (): Promise<void> =>
    begin(async () => {
      const created = await store.create({
        message: contentOf(value, attachments.items),
        // Whoever is faster than the list of agents gets whom they had last.
        ...(agent || picked || chosen ? { agent: agent?.id ?? picked ?? chosen } : {}),
        ...(folder.trim() === "" ? {} : { project: folder.trim() }),
        params: { ...params, ...(mode === null ? {} : { mode }) },
      });
      setValue("");
      attachments.clear();
      return created;
    });

  /** What was written meanwhile stays, for after the show. */
  const play = (message: string): Promise<void> => begin(() => store.create({ message, agent: DEMO }));

  const begin = async (create: () => Promise<Accepted>): Promise<void> => {
    if (state === "starting") return;
    setState("starting");
    try {
      goTo(addressOf((await create()).conversation));
    } catch (error) {
      const refusal = asApiError(error);
      setState({ failed: said(plain(refusal.message)) || places.fresh.failed });
      if (isAboutFolder(refusal.error)) field.current?.focus();
    }
  };

  return (
    <>
      <HeaderFrame listShown={listShown} onShowList={onShowList} />
      <main className="home">
        <div className="home-column">
          <Mark />
          <h1 className="home-heading">{places.fresh.heading}</h1>
          <div className="composer-frame" data-region>
            <ComposerBox
              ref={box}
              value={value}
              onChange={setValue}
              placeholder={places.fresh.placeholder}
              attachments={attachments}
              autoFocus={!matchMedia("(pointer: coarse)").matches}
              completes={{ project: place.refusal === null && folder.trim() ? folder.trim() : null, conversation: null }}
              onSend={() => void start()}
              notice={trouble ? text.composer.offline : null}
              tools={
                <>
                  <AgentMenu agents={agents.items} phase={agents.phase} agent={agent} onChoose={choose} />
                  <ModeMenu mode={mode ?? "ask"} onChoose={setMode} />
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
            <label htmlFor="folder">{places.fresh.folder}</label>
            <input
              ref={field}
              id="folder"
              className="bare-field mono"
              placeholder={place.home ?? places.fresh.folderDefault}
              title={places.fresh.folderHint}
              spellCheck={false}
              autoCapitalize="off"
              autoComplete="off"
              list="known-folders"
              aria-invalid={place.refusal !== null || undefined}
              aria-describedby="folder-note"
              value={folder}
              onChange={(event) => {
                setFolder(event.target.value);
                setState("idle");
              }}
              onKeyDown={(event) => {
                // A folder is no message: Enter goes on to writing one.
                if (event.key === "Enter" && !event.nativeEvent.isComposing) box.current?.focus();
              }}
            />
            <datalist id="known-folders">
              {place.folders.map((known) => (
                <option key={known} value={known} />
              ))}
            </datalist>
            <button type="button" className="icon-button" aria-label={places.fresh.browse} title={places.fresh.browse} onClick={() => setBrowsing(true)}>
              <Icon name="folder" />
            </button>
          </div>
          <FolderNote refusal={place.refusal} untrusted={untrusted} folder={folder.trim()} />
          {browsing && (
            <Suspense fallback={null}>
              <FolderDialog
                from={place.refusal === null && folder.trim() ? folder.trim() : (place.home ?? "/")}
                known={place.folders}
                onChoose={(one) => {
                  setFolder(one);
                  setState("idle");
                  setBrowsing(false);
                }}
                onClose={() => setBrowsing(false)}
              />
            </Suspense>
          )}
          {state === "starting" && (
            <p className="hint" role="status">
              {places.fresh.creating}
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
                if (agentId) choose(agentId);
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
          {isEmpty && agents.items.some(({ id, problem }) => id === DEMO && !problem) && (
            <FirstSteps starting={state === "starting"} onStart={(message) => void play(message)} />
          )}
          {isEmpty && (
            <ul className="tips">
              {places.fresh.tips.map((tip) => (
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
  if (agents.length === 0) return phase === "loading" ? <span className="hint">{places.fresh.loadingAgents}</span> : null;
  return (
    <Menu
      label={`${places.fresh.agent}: ${agent?.name ?? ""}`}
      className="button quiet small"
      align="start"
      actions={[...agents.map((known) => ({
        label: known.name,
        checked: known.id === agent?.id,
        hint: known.ready ? text.fresh.runsOn(known.backend, known.model) : said(shortPaths(known.problem ?? known.note ?? "")),
        disabled: known.problem != null,
        onSelect: () => onChoose(known.id),
      })), { label: places.fresh.allAgents, icon: "sliders" as const, onSelect: () => goTo("/agents") }]}
    >
      <Icon name="spark" />
      <span>{agent?.name}</span>
    </Menu>
  );
}

function AgentNote({ agent, phase }: { agent: AgentEntry | undefined; phase: string }) {
  if (phase === "failed") return <p className="hint">{places.fresh.agentsFailed}</p>;
  if (phase === "ready" && !agent?.ready) {
    return (
      <p className="home-note">
        <span className="is-wait">{agent?.note ? said(shortPaths(agent.note)) : places.backends.needed}</span>{" "}
        <ScreenLink to="/backends">{places.backends.see}</ScreenLink>
      </p>
    );
  }
  const makeshift = agent && agent.id !== DEMO && { demo: places.fresh.onlyDemo, local: places.fresh.onlyLocal }[agent.backend];
  if (makeshift) {
    return (
      <p className="hint home-note">
        {makeshift} <ScreenLink to="/backends">{places.fresh.setUp}</ScreenLink>
      </p>
    );
  }
  return agent?.description ? <p className="hint home-note">{agent.description}</p> : null;
}

interface FolderNoteProps {
  refusal: string | null;
  untrusted: number;
  folder: string;
}

/** What is wrong with the folder, or what could be had from it. */
function FolderNote({ refusal, untrusted, folder }: FolderNoteProps) {
  return (
    <p id="folder-note" className={refusal === null ? "hint home-note" : "is-bad home-note"} role={refusal === null ? undefined : "alert"} hidden={refusal === null && untrusted === 0}>
      {refusal ?? (
        <>
          {places.fresh.untrusted(untrusted)} <ScreenLink to={withQuery("/agents", { project: folder })}>{places.fresh.lookAtThem}</ScreenLink>
        </>
      )}
    </p>
  );
}

/** A pause in typing. */
const TYPING_MS = 400;

interface Place {
  /** Who can be talked to there. */
  agents: { phase: string; items: readonly AgentEntry[] };
  lastUsed: string | null;
  /** Agents that the folder holds and that nobody has trusted. */
  untrusted: number;
  /** Why the folder cannot be worked in. */
  refusal: string | null;
  /** Those that were worked in. */
  folders: readonly string[];
  /** Where one works without naming a folder. */
  home: string | null;
}

/** What a folder has to offer, once it is written out. */
function usePlace(folder: string): Place {
  const api = useLaterApi();
  const known = usePick((snapshot) => snapshot.agents);
  const written = useRested(folder.trim());
  const load = useCallback(() => api.agentsIn(written || undefined), [api, written]);
  const { value, error } = useFresh(load);
  const loadFolders = useCallback(() => api.projects(), [api]);
  const projects = useFresh(loadFolders).value ?? [];
  const refused = written !== "" && written === folder.trim() && error !== null && isAboutFolder(error.error);
  const own = (value?.items ?? []).filter((agent: Listed) => agent.source === "project");
  return {
    agents: value === undefined ? known : { phase: "ready", items: value.items.filter((agent) => agent.source !== "project" || agent.trusted) },
    lastUsed: value?.last_used ?? null,
    untrusted: refused ? 0 : own.filter(({ trusted, backend }) => !trusted && backend !== "none").length,
    refusal: refused ? said(plain(error.message)) : null,
    folders: projects.filter(({ exists }) => exists).map(({ project }) => project),
    home: projects.find(({ home }) => home)?.project ?? null,
  };
}

/** What was written, once nobody has typed for a moment. */
function useRested(value: string): string {
  const [rested, setRested] = useState(value);
  useEffect(() => {
    const timer = setTimeout(() => setRested(value), TYPING_MS);
    return () => clearTimeout(timer);
  }, [value]);
  return rested;
}

function isAboutFolder({ code, message, details }: { code: string; message: string; details?: object }): boolean {
  return code === "invalid" && (message.startsWith("`project`") || (details !== undefined && "project" in details));
}

/** The field is named by where the words stand. */
function plain(message: string): string {
  return message.replace(/^`project`: /, "");
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
