/** One conversation looked into from the list: what it is, its last words, live, and everything that can be done with it. */

import { useState } from "react";
import type { Listing } from "../../protocol/events.gen";
import { dayAndClock, exactTime, money } from "../../measures";
import { text } from "../../text";
import { browse as words } from "../../text.browse";
import { usePageActions } from "../actions";
import { useAgentName } from "../agents";
import { Icon } from "../controls/Icon";
import { Menu, type MenuAction } from "../controls/Menu";
import { useMinutes } from "../controls/now";
import { TitleField } from "../header/Header";
import ConfirmRemoval from "../list/ConfirmRemoval";
import { addressOf, goTo } from "../route";
import { useStore } from "../store";
import { Peek } from "../subagents/Peek";
import { shortPath } from "../tools/say";
import { stateOf } from "./rows";
import "../../style/work.css";

interface PreviewProps {
  id: string;
  row: Listing | undefined;
  asking: ReadonlySet<string>;
  readOnly: boolean;
}

export function Preview({ id, row, asking, readOnly }: PreviewProps) {
  const store = useStore();
  const page = usePageActions();
  const now = useMinutes();
  const agent = useAgentName(row?.agent ?? "");
  const [mode, setMode] = useState<"shown" | "renaming" | "removing">("shown");
  const [done, setDone] = useState<{ said: string; undo: () => void } | null>(null);
  if (row === undefined) return <Peek conversation={id} agent={words.gone} />;

  const title = row.title || text.list.untitled;
  const archive = (archived: boolean): void => {
    store.command(id, { type: "update_conversation", archived });
    setDone({ said: archived ? words.archived(title) : words.unarchived(title), undo: () => archive(!archived) });
  };
  const rename = (value: string | null): void => {
    setMode("shown");
    if (value === null || value === row.title) return;
    const before = row.title;
    store.command(id, { type: "update_conversation", title: value });
    if (before) setDone({ said: words.renamed, undo: () => store.command(id, { type: "update_conversation", title: before }) });
  };
  const more: MenuAction[] = [
    { label: words.share, icon: "export", onSelect: () => page.share(id) },
    { label: words.inspect, icon: "list", onSelect: () => goTo(`/inspect/${id}`) },
    ...(readOnly
      ? []
      : ([
          { label: words.rename, icon: "edit", onSelect: () => setMode("renaming") },
          { label: words.remove, icon: "trash", danger: true, onSelect: () => setMode("removing") },
        ] as const)),
  ];
  const state = stateOf(row, asking);
  const meta = text.join(
    state !== "idle" && words.row[state],
    agent,
    row.project && shortPath(row.project, 2),
    words.messages(row.message_count),
    row.cost_usd > 0 && money(row.cost_usd),
  );
  return (
    <section className="preview" aria-label={words.preview(title)}>
      <div className="preview-head">
        {mode === "renaming" ? (
          <TitleField title={row.title} onDone={rename} />
        ) : (
          <h2 className="preview-title">{title}</h2>
        )}
        <p className="card-quiet" title={row.project ?? undefined}>
          {meta}
          <br />
          <time title={exactTime(row.created_at)}>{words.started(dayAndClock(row.created_at, now))}</time>
          {" · "}
          <time title={exactTime(row.updated_at)}>{words.updated(dayAndClock(row.updated_at, now))}</time>
        </p>
        <div className="card-bar">
          <button type="button" className="button small primary" onClick={() => page.open(id)}>
            {words.open}
          </button>
          <a className="button small" href={addressOf(id)} target="_blank" rel="noopener">
            <Icon name="open" />
            {words.newTab}
          </a>
          {!readOnly && (
            <button type="button" className="button small" onClick={() => archive(!row.archived)}>
              <Icon name="archive" />
              {row.archived ? words.unarchive : words.archive}
            </button>
          )}
          <Menu label={text.list.rowMenu(title)} actions={more}>
            <Icon name="more" />
          </Menu>
        </div>
        <p className="preview-done" role="status">
          {done && (
            <>
              {done.said}{" "}
              <button
                type="button"
                className="link-button"
                onClick={() => {
                  done.undo();
                  setDone(null);
                }}
              >
                {words.undo}
              </button>
            </>
          )}
        </p>
      </div>
      <Peek conversation={id} agent={agent} />
      {mode === "removing" && (
        <ConfirmRemoval
          title={title}
          onCancel={() => setMode("shown")}
          onConfirm={() => {
            setMode("shown");
            store.command(id, { type: "delete_conversation" });
            goTo("/conversations");
          }}
        />
      )}
    </section>
  );
}
