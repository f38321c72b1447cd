/** The top of a conversation: its title to change, who answers and where, what it is doing, and Stop. */

import { useEffect, useState, type ReactNode } from "react";
import type { OpenConversation } from "../../model/store";
import { text } from "../../text";
import { useAgentName } from "../agents";
import { copyText } from "../controls/Copy";
import { Icon } from "../controls/Icon";
import { Menu, type MenuAction } from "../controls/Menu";
import { ask, onAsked } from "../keys";
import { useStore } from "../store";
import { shortPath } from "../tools/say";
import { Meter } from "./Meter";

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
  conversation: OpenConversation;
  listShown: boolean;
  onShowList: () => void;
  onStop: () => void;
}

export function Header({ conversation, listShown, onShowList, onStop }: HeaderProps) {
  const store = useStore();
  const { id, state } = conversation;
  const agent = useAgentName(state.agent);
  const [renaming, setRenaming] = useState(false);
  useEffect(() => onAsked("rename", () => setRenaming(true)), []);

  const model = state.turn?.model ?? state.messages.findLast((message) => message.model !== null)?.model;
  const meta = text.join(agent, model, state.project && shortPath(state.project, 2), state.archived && text.header.archived);
  const actions: MenuAction[] = [
    { label: text.header.rename, icon: "edit", onSelect: () => setRenaming(true) },
    { label: text.header.find, icon: "search", onSelect: () => ask("find") },
    {
      label: state.archived ? text.list.unarchive : text.list.archive,
      icon: "archive",
      onSelect: () => store.command(id, { type: "update_conversation", archived: !state.archived }),
    },
    { label: text.header.copyId, icon: "copy", onSelect: () => void copyText(id) },
  ];

  return (
    <HeaderFrame listShown={listShown} onShowList={onShowList}>
      <div className="bar-title">
        {renaming ? (
          <TitleField
            title={state.title}
            onDone={(title) => {
              setRenaming(false);
              if (title !== null && title !== state.title) store.command(id, { type: "update_conversation", title });
            }}
          />
        ) : (
          <h1 className="bar-heading">
            <button type="button" className="title-button ellipsis" title={text.header.rename} onClick={() => setRenaming(true)}>
              {state.title || text.list.untitled}
            </button>
          </h1>
        )}
        <p className="bar-meta ellipsis" title={state.project ?? undefined}>
          {meta}
        </p>
      </div>
      <Status conversation={conversation} />
      <Meter state={state} />
      {state.turn && (
        <button type="button" className="button small bar-stop" onClick={onStop}>
          <Icon name="stop" />
          {text.header.stop}
        </button>
      )}
      <Menu label={text.header.menu} actions={actions}>
        <Icon name="more" />
      </Menu>
    </HeaderFrame>
  );
}

const TONE = {
  idle: null,
  completed: null,
  generating: "live",
  executing_tools: "live",
  waiting_ide: "wait",
  paused: "wait",
  waiting_user_input: "wait",
  error: "bad",
} as const;

function Status({ conversation: { state } }: { conversation: OpenConversation }) {
  const tone = TONE[state.status];
  if (tone === null) return null;
  return (
    <p className={`bar-status is-${tone}`}>
      <span className={`dot is-${tone}`} />
      <span className="bar-status-words">{text.header.status[state.status]}</span>
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
