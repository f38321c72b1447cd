/** The mission of a conversation's folder, above the conversation. */

import { words } from "../../text.agents";
import { Dialog } from "../controls/Dialog";
import { Icon } from "../controls/Icon";
import { nameOf } from "../files/paths";
import "../../style/screens.css";
import "../../style/agents.css";
import { MissionPanel } from "./MissionPanel";

export default function MissionDialog({ project, onClose }: { project: string; onClose: () => void }) {
  const heading = words.missions.of(nameOf(project));
  return (
    <Dialog label={heading} className="sheet" onClose={onClose}>
      <div className="sheet-head">
        <h2>{heading}</h2>
        <button type="button" className="icon-button" aria-label={words.missions.close} onClick={onClose}>
          <Icon name="close" />
        </button>
      </div>
      <div className="sheet-body">
        <MissionPanel project={project} onFollow={onClose} />
      </div>
    </Dialog>
  );
}
