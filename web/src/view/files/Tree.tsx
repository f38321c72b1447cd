/** The files of a folder on the server: a folder is asked for when it is opened, a file is chosen. Arrow keys walk it. */

import { useCallback, useState, type KeyboardEvent } from "react";
import type { TreeEntry } from "../../protocol/agents";
import { bytes } from "../../measures";
import { said } from "../../sentences";
import { words } from "../../text.agents";
import { Icon } from "../controls/Icon";
import { visible } from "../controls/visible";
import { useFresh, useLaterApi } from "../frame/fresh";
import { Trouble } from "../frame/Trouble";
import { nameOf } from "./paths";

interface TreeProps {
  project: string;
  onChoose: (path: string) => void;
}

export function Tree({ project, onChoose }: TreeProps) {
  const api = useLaterApi();
  const load = useCallback(() => api.tree(project), [api, project]);
  const { value, error, again } = useFresh(load);
  if (error && value === undefined) return <Trouble heading={words.files.failed} error={error} onAgain={again} />;
  if (value === undefined) {
    return (
      <p className="hint" role="status">
        {words.files.loading}
      </p>
    );
  }
  return (
    <nav className="tree" aria-label={words.files.tree(nameOf(project))} onKeyDown={walk}>
      <Entries project={project} entries={value.entries} truncated={value.truncated} onChoose={onChoose} />
    </nav>
  );
}

interface EntriesProps extends TreeProps {
  entries: readonly TreeEntry[];
  truncated: boolean;
}

function Entries({ project, entries, truncated, onChoose }: EntriesProps) {
  if (entries.length === 0) return <p className="hint tree-note">{words.files.empty}</p>;
  return (
    <>
      <ul>
        {entries.map((entry) => (
          <li key={entry.path}>
            {entry.kind === "folder" ? <Folder project={project} entry={entry} onChoose={onChoose} /> : <File entry={entry} onChoose={onChoose} />}
          </li>
        ))}
      </ul>
      {truncated && <p className="hint tree-note">{words.files.more}</p>}
    </>
  );
}

function Folder({ project, entry, onChoose }: TreeProps & { entry: TreeEntry }) {
  const [open, setOpen] = useState(false);
  return (
    <details onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary className="tree-item">
        <span className="tree-chevron">
          <Icon name="chevron" />
        </span>
        <Icon name="folder" />
        <span className="tree-name">{visible(entry.name)}</span>
      </summary>
      <div className="tree-inside">{open && <Inside project={project} path={entry.path} onChoose={onChoose} />}</div>
    </details>
  );
}

function Inside({ project, path, onChoose }: TreeProps & { path: string }) {
  const api = useLaterApi();
  const load = useCallback(() => api.tree(project, path), [api, project, path]);
  const { value, error } = useFresh(load);
  if (value !== undefined) return <Entries project={project} entries={value.entries} truncated={value.truncated} onChoose={onChoose} />;
  if (error) return <p className="is-bad tree-note">{said(error.message) || words.files.folderFailed}</p>;
  return <p className="hint tree-note">{words.files.loading}</p>;
}

function File({ entry, onChoose }: { entry: TreeEntry; onChoose: (path: string) => void }) {
  const choosable = entry.kind === "file" || entry.leads === "file" || entry.leads === "folder";
  const name = <span className="tree-name">{visible(entry.name)}</span>;
  const icon = <Icon name={entry.kind === "link" ? "steer" : entry.kind === "file" ? "file" : "cut"} />;
  if (!choosable) {
    return (
      <p className="tree-item is-inert">
        {icon}
        {name}
        <Note entry={entry} />
      </p>
    );
  }
  return (
    <button type="button" className="tree-item" title={words.files.choose(entry.path)} onClick={() => onChoose(entry.path)}>
      {icon}
      {name}
      <Note entry={entry} />
    </button>
  );
}

function Note({ entry }: { entry: TreeEntry }) {
  if (entry.kind === "file") return <span className="hint tabular">{entry.size_bytes == null ? "" : bytes(entry.size_bytes)}</span>;
  if (entry.kind === "other") return <span className="hint">{words.files.other}</span>;
  const where = entry.leads === "outside" ? words.files.outside : entry.leads === "nowhere" ? words.files.nowhere : null;
  return (
    <span className={where === null ? "hint ellipsis" : "is-wait ellipsis"} title={entry.target ?? undefined}>
      {where ?? words.files.link(visible(entry.target ?? ""))}
    </span>
  );
}

function walk(event: KeyboardEvent<HTMLElement>): void {
  const items = [...event.currentTarget.querySelectorAll<HTMLElement>("summary, button")].filter((item) => item.offsetParent !== null);
  const at = items.indexOf(document.activeElement as HTMLElement);
  if (at === -1) return;
  const item = items[at];
  const folder = item?.tagName === "SUMMARY" ? (item.parentElement as HTMLDetailsElement) : null;
  if (event.key === "ArrowDown") items[at + 1]?.focus();
  else if (event.key === "ArrowUp") items[at - 1]?.focus();
  else if (event.key === "Home") items[0]?.focus();
  else if (event.key === "End") items.at(-1)?.focus();
  else if (event.key === "ArrowRight" && folder) folder.open = true;
  else if (event.key === "ArrowLeft" && folder?.open) folder.open = false;
  else if (event.key === "ArrowLeft") item?.closest("li")?.parentElement?.closest("details")?.querySelector("summary")?.focus();
  else return;
  event.preventDefault();
}
