/** A conversation in the list: what it is, what it last said, whether it needs you; and what can be done with it. */

import { memo, Suspense, useState } from "react";
import type { Listing } from "../../protocol/events.gen";
import { ago, exactTime } from "../../measures";
import { said } from "../../sentences";
import { text } from "../../text";
import { usePageActions } from "../actions";
import { useAgentName } from "../agents";
import { Icon } from "../controls/Icon";
import { Menu, type MenuAction } from "../controls/Menu";
import { useMinutes } from "../controls/now";
import { plainly } from "../controls/visible";
import { ScreenLink } from "../frame/ScreenLink";
import { TitleField } from "../header/Header";
import { ConfirmRemoval } from "../later";
import { addressOf, goTo } from "../route";
import { usePick, useStore, useWaitsBelow } from "../store";

interface ListRowProps {
  item: Listing;
  current: boolean;
  unread: boolean;
  onChosen: () => void;
}

type Tone = "wait" | "live" | "bad" | null;

function toneOf(item: Listing, below: boolean): Tone {
  if (item.open_requests > 0 || below) return "wait";
  if (item.turn !== null) return "live";
  return item.status === "error" ? "bad" : null;
}

function stateOf(item: Listing, tone: Tone): string | null {
  if (tone === "wait") return text.list.status.waiting(item.open_requests);
  if (tone === "live") return text.join(text.list.status.running, item.queue_size > 0 && text.list.status.queued(item.queue_size));
  return tone === "bad" ? text.list.status.failed : null;
}

export const ListRow = memo(function ListRow({ item, current, unread, onChosen }: ListRowProps) {
  const store = useStore();
  const actions = usePageActions();
  const now = useMinutes();
  const [mode, setMode] = useState<"shown" | "renaming" | "removing">("shown");
  const title = item.title || text.list.untitled;
  const tone = toneOf(item, useWaitsBelow(item.id));
  const state = stateOf(item, tone);
  const agent = useAgentName(item.agent);
  const isBranch = item.parent !== null && (item.parent_kind ?? "branch") === "branch";
  const parent = usePick(({ list }) => (item.parent === null ? undefined : list.byId.get(item.parent)?.title));

  const menu: MenuAction[] = [
    { label: text.list.newTab, icon: "open", onSelect: () => window.open(`/c/${item.id}`, "_blank", "noopener") },
    { label: text.list.preview, icon: "search", onSelect: () => goTo(`/conversations/${item.id}`) },
    { label: text.list.rename, icon: "edit", writes: true, onSelect: () => setMode("renaming") },
    {
      label: item.archived ? text.list.unarchive : text.list.archive,
      icon: "archive",
      writes: true,
      onSelect: () => store.command(item.id, { type: "update_conversation", archived: !item.archived }),
    },
    { label: text.list.share, icon: "export", onSelect: () => actions.share(item.id) },
    { label: text.list.remove, icon: "trash", danger: true, writes: true, onSelect: () => setMode("removing") },
  ];

  if (mode === "renaming") {
    return (
      <li className="list-row renaming">
        <TitleField
          title={item.title}
          onDone={(value) => {
            setMode("shown");
            if (value !== null && value !== item.title) store.command(item.id, { type: "update_conversation", title: value });
          }}
        />
      </li>
    );
  }
  return (
    <li className={current ? "list-row current" : "list-row"}>
      <ScreenLink className="list-link" to={addressOf(item.id)} aria-current={current ? "page" : undefined} onFollow={onChosen}>
        <span className="list-top">
          {tone && <span className={`dot is-${tone}`} />}
          {item.archived && (
            <span className="list-branch" title={text.list.archived}>
              <Icon name="archive" />
            </span>
          )}
          {isBranch && (
            <span className="list-branch" title={parent ? text.list.branchOf(parent) : text.list.branch}>
              <Icon name="branch" />
            </span>
          )}
          <span className={unread ? "list-title ellipsis unread" : "list-title ellipsis"}>{title}</span>
          {isBranch && <span className="sr-only">, {parent ? text.list.branchOf(parent) : text.list.branch}</span>}
          {item.archived && <span className="sr-only">, {text.list.archived}</span>}
          {unread && <span className="sr-only">, {text.list.unread}</span>}
          <time className="list-time tabular" title={exactTime(item.updated_at)}>
            {ago(item.updated_at, now)}
          </time>
        </span>
        <span className="list-bottom">
          {state ? (
            <span className={`list-state is-${tone} ellipsis`}>{state}</span>
          ) : (
            <span className="list-line ellipsis">{plainly(said(item.last_line ?? ""))}</span>
          )}
          <span className="badge">{agent}</span>
          {unread && <span className="unread-dot" />}
        </span>
      </ScreenLink>
      <Menu label={text.list.rowMenu(title)} actions={menu} className="icon-button small list-menu">
        <Icon name="more" />
      </Menu>
      {mode === "removing" && (
        <Suspense fallback={null}>
          <ConfirmRemoval
            title={title}
            onCancel={() => setMode("shown")}
            onConfirm={() => {
              setMode("shown");
              store.command(item.id, { type: "delete_conversation" });
              if (current) actions.goHome();
            }}
          />
        </Suspense>
      )}
    </li>
  );
});
