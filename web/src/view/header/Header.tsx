/** The top of a conversation: its title to change, who answers and where, what it is doing, and Stop. */

import { memo, Suspense, useEffect, useState, type ReactNode } from "react";
import { isCompacting } from "../../model/turns";
import { text } from "../../text";
import { usePageActions } from "../actions";
import { useAgentName } from "../agents";
import { copyText } from "../controls/Copy";
import { Icon } from "../controls/Icon";
import { Menu, type MenuAction } from "../controls/Menu";
import { ScreenLink } from "../frame/ScreenLink";
import { ask, onAsked } from "../keys";
import { ConfirmRemoval, Meter, MissionDialog, Settings, TreeDialog } from "../later";
import { addressOf, goTo } from "../route";
import { useMayWrite, usePick, usePicked, useStore, useWaitsBelow } from "../store";
import { shortPath } from "../tools/say";

interface FrameProps {
  listShown: boolean;
  onShowList: () => void;
  children?: ReactNode;
}

/** The bar itself, with the way to the list. */
export function HeaderFrame({ listShown, onShowList, children }: FrameProps) {
  return (
    <header className="bar" data-region tabIndex={-1}>
      <button
        type="button"
        className="icon-button"
        aria-label={listShown ? text.list.close : text.list.open}
        aria-expanded={listShown}
        onClick={onShowList}
      >
        <Icon name="sidebar" />
      </button>
      {children}
    </header>
  );
}

interface HeaderProps {
  id: string;
  listShown: boolean;
  onShowList: () => void;
  onStop: () => void;
}

export const Header = memo(function Header({ id, listShown, onShowList, onStop }: HeaderProps) {
  const store = useStore();
  const page = usePageActions();
  const title = usePicked(id, ({ state }) => state.title) ?? "";
  const agent = useAgentName(usePicked(id, ({ state }) => state.agent) ?? "");
  const model = usePicked(id, ({ state }) => state.turn?.model ?? state.messages.findLast((message) => message.model !== null)?.model);
  const project = usePicked(id, ({ state }) => state.project) ?? null;
  const archived = usePicked(id, ({ state }) => state.archived) ?? false;
  const busy = usePicked(id, ({ state }) => state.turn !== null) ?? false;
  const mayWrite = useMayWrite();
  const [renaming, setRenaming] = useState(false);
  const [removing, setRemoving] = useState(false);
  const [settings, setSettings] = useState<"all" | "grants" | null>(null);
  const [shown, setShown] = useState<"files" | "mission" | null>(null);
  useEffect(() => onAsked("rename", () => setRenaming(true)), []);
  useEffect(() => onAsked("settings", () => setSettings("all")), []);
  useEffect(() => onAsked("grants", () => setSettings("grants")), []);

  const meta = text.join(agent, model, project && shortPath(project, 2), archived && text.header.archived, !mayWrite && text.header.readOnly);
  const actions: MenuAction[] = [
    { label: text.header.rename, icon: "edit", writes: true, onSelect: () => setRenaming(true) },
    { label: text.header.settings, icon: "sliders", writes: true, onSelect: () => setSettings("all") },
    { label: text.header.branch, icon: "branch", writes: true, onSelect: () => page.branch(id) },
    { label: text.header.find, icon: "search", onSelect: () => ask("find") },
    ...(project === null
      ? []
      : ([
          { label: text.screens.files, icon: "folder", onSelect: () => setShown("files") },
          { label: text.header.mission, icon: "steer", onSelect: () => setShown("mission") },
        ] as const)),
    {
      label: archived ? text.list.unarchive : text.list.archive,
      icon: "archive",
      writes: true,
      onSelect: () => store.command(id, { type: "update_conversation", archived: !archived }),
    },
    { label: text.list.share, icon: "export", onSelect: () => page.share(id) },
    { label: text.list.inspect, icon: "list", onSelect: () => goTo(`/inspect/${id}`) },
    { label: text.header.copyId, icon: "copy", onSelect: () => void copyText(id) },
    { label: text.list.remove, icon: "trash", danger: true, writes: true, onSelect: () => setRemoving(true) },
  ];

  return (
    <HeaderFrame listShown={listShown} onShowList={onShowList}>
      <div className="bar-title">
        {renaming && mayWrite ? (
          <TitleField
            title={title}
            onDone={(changed) => {
              setRenaming(false);
              if (changed !== null && changed !== title) store.command(id, { type: "update_conversation", title: changed });
            }}
          />
        ) : (
          <h1 className="bar-heading">
            <button type="button" className="title-button ellipsis" title={text.header.rename} disabled={!mayWrite} onClick={() => setRenaming(true)}>
              {title || text.list.untitled}
            </button>
          </h1>
        )}
        <p className="bar-meta ellipsis" title={project ?? undefined}>
          <ParentLink id={id} />
          {meta}
        </p>
      </div>
      <StatusWords id={id} />
      <Suspense fallback={null}>
        <Meter id={id} />
      </Suspense>
      {busy && (
        <button type="button" className="button small bar-stop" onClick={onStop}>
          <Icon name="stop" />
          {text.header.stop}
        </button>
      )}
      <Menu label={text.header.menu} actions={actions}>
        <Icon name="more" />
      </Menu>
      {settings !== null && (
        <Suspense fallback={null}>
          <Settings id={id} atGrants={settings === "grants"} onClose={() => setSettings(null)} />
        </Suspense>
      )}
      {shown !== null && project !== null && (
        <Suspense fallback={null}>
          {shown === "files" ? (
            <TreeDialog id={id} project={project} onClose={() => setShown(null)} />
          ) : (
            <MissionDialog project={project} onClose={() => setShown(null)} />
          )}
        </Suspense>
      )}
      {removing && (
        <Suspense fallback={null}>
          <ConfirmRemoval
            title={title || text.list.untitled}
            onCancel={() => setRemoving(false)}
            onConfirm={() => {
              setRemoving(false);
              store.command(id, { type: "delete_conversation" });
              page.goHome();
            }}
          />
        </Suspense>
      )}
    </HeaderFrame>
  );
});

/** Where the conversation comes from, and the way back there. */
function ParentLink({ id }: { id: string }) {
  const parent = usePicked(id, ({ state }) => state.parent) ?? null;
  const title = usePick(({ list }) => (parent === null ? undefined : list.byId.get(parent.conversation)?.title));
  if (parent === null) return null;
  const place = parent.message === null ? "" : `#m=${encodeURIComponent(parent.message)}`;
  return (
    <>
      <ScreenLink className="parent-link" to={`${addressOf(parent.conversation)}${place}`}>
        {text.header.parent[parent.kind](title || text.header.parentUnknown)}
      </ScreenLink>
      {" · "}
    </>
  );
}

const TONE = {
  idle: null,
  completed: null,
  generating: "live",
  compacting: "live",
  executing_tools: "live",
  waiting_ide: "wait",
  paused: "wait",
  waiting_user_input: "wait",
  error: "bad",
} as const;

function StatusWords({ id }: { id: string }) {
  const own = usePicked(id, ({ state }) => (isCompacting(state.turn) ? "compacting" : state.status)) ?? "idle";
  const status = useWaitsBelow(id) ? "waiting_user_input" : own;
  const tone = TONE[status];
  if (tone === null) return null;
  return (
    <p className={`bar-status is-${tone}`}>
      <span className={`dot is-${tone}`} />
      <span className="bar-status-words">{text.header.status[status]}</span>
    </p>
  );
}

interface TitleFieldProps {
  title: string;
  /** null: leave it as it was. */
  onDone: (title: string | null) => void;
}

export function TitleField({ title, onDone }: TitleFieldProps) {
  const [value, setValue] = useState(title);
  return (
    <input
      className="title-field"
      aria-label={text.header.titleLabel}
      autoFocus
      maxLength={500}
      value={value}
      onFocus={(event) => event.target.select()}
      onChange={(event) => setValue(event.target.value)}
      onBlur={() => onDone(value.trim() || null)}
      onKeyDown={(event) => {
        if (event.nativeEvent.isComposing) return;
        if (event.key === "Enter") onDone(value.trim() || null);
        else if (event.key === "Escape") {
          event.preventDefault();
          event.stopPropagation();
          onDone(null);
        }
      }}
    />
  );
}
