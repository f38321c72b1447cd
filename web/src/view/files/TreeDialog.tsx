/** The files of a conversation's folder, above it. Choosing one mentions it in the message that is being written. */

import { words } from "../../text.agents";
import { Dialog } from "../controls/Dialog";
import { Icon } from "../controls/Icon";
import { ask } from "../keys";
import { useStore } from "../store";
import "../../style/screens.css";
import "../../style/agents.css";
import { mentioned, nameOf } from "./paths";
import { Tree } from "./Tree";

interface TreeDialogProps {
  id: string;
  project: string;
  onClose: () => void;
}

export default function TreeDialog({ id, project, onClose }: TreeDialogProps) {
  const store = useStore();
  return (
    <Dialog label={words.files.tree(nameOf(project))} className="sheet" onClose={onClose}>
      <div className="sheet-head">
        <h2>{words.files.tree(nameOf(project))}</h2>
        <button type="button" className="icon-button" aria-label={words.files.close} onClick={onClose}>
          <Icon name="close" />
        </button>
      </div>
      <div className="sheet-body">
        <p className="hint">{words.files.leadHere}</p>
        <Tree
          project={project}
          onChoose={(path) => {
            store.setDraft(id, mentioned(store.getSnapshot().open.get(id)?.draft ?? "", path));
            onClose();
            // Once the dialog is gone and has given the focus back.
            requestAnimationFrame(() => ask("compose"));
          }}
        />
      </div>
    </Dialog>
  );
}
