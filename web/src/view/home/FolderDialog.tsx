/** A folder of the server, chosen by walking to it: those worked in before, or down from where one is. */

import { useCallback, useState } from "react";
import { said } from "../../sentences";
import { words } from "../../text.agents";
import { Dialog } from "../controls/Dialog";
import { Icon } from "../controls/Icon";
import { visible } from "../controls/visible";
import { above, inside } from "../files/paths";
import { useFresh, useLaterApi } from "../frame/fresh";
import "../../style/screens.css";
import "../../style/agents.css";

interface FolderDialogProps {
  /** Where to begin. */
  from: string;
  /** Folders that were worked in. */
  known: readonly string[];
  onChoose: (folder: string) => void;
  onClose: () => void;
}

export default function FolderDialog({ from, known, onChoose, onClose }: FolderDialogProps) {
  // Until somebody walks, it begins where it is told, also if that is told a moment later.
  const [walked, setFolder] = useState<string | null>(null);
  const folder = walked ?? from;
  const up = above(folder);
  return (
    <Dialog label={words.picker.heading} className="sheet" onClose={onClose}>
      <div className="sheet-head">
        <h2>{words.picker.heading}</h2>
        <button type="button" className="icon-button" aria-label={words.picker.close} onClick={onClose}>
          <Icon name="close" />
        </button>
      </div>
      <div className="sheet-body">
        {known.length > 0 && (
          <section>
            <h3>{words.picker.known}</h3>
            <ul className="tree is-flat">
              {known.map((one) => (
                <li key={one}>
                  <button type="button" className="tree-item" onClick={() => onChoose(one)}>
                    <Icon name="folder" />
                    <span className="tree-name mono">{one}</span>
                  </button>
                </li>
              ))}
            </ul>
          </section>
        )}
        <section>
          <h3 className="mono path" aria-live="polite">
            {folder}
          </h3>
          <ul className="tree is-flat">
            {up !== null && (
              <li>
                <button type="button" className="tree-item" onClick={() => setFolder(up)}>
                  <Icon name="back" />
                  <span className="tree-name">{words.picker.up}</span>
                </button>
              </li>
            )}
            <Folders key={folder} folder={folder} onOpen={setFolder} />
          </ul>
        </section>
      </div>
      <div className="sheet-bar">
        <button type="button" className="button primary" onClick={() => onChoose(folder)}>
          {words.picker.choose}
        </button>
      </div>
    </Dialog>
  );
}

function Folders({ folder, onOpen }: { folder: string; onOpen: (folder: string) => void }) {
  const api = useLaterApi();
  const load = useCallback(() => api.tree(folder), [api, folder]);
  const { value, error } = useFresh(load);
  if (error && value === undefined) return <li className="is-bad tree-note">{said(error.message) || words.picker.failed}</li>;
  if (value === undefined) return <li className="hint tree-note">{words.picker.loading}</li>;
  const folders = value.entries.filter(({ kind }) => kind === "folder");
  if (folders.length === 0) return <li className="hint tree-note">{words.picker.none}</li>;
  return folders.map(({ name }) => (
    <li key={name}>
      <button type="button" className="tree-item" aria-label={words.picker.open(name)} onClick={() => onOpen(inside(folder, name))}>
        <Icon name="folder" />
        <span className="tree-name">{visible(name)}</span>
      </button>
    </li>
  ));
}
