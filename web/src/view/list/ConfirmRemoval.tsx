/** Deleting is final for every device, so it is asked once more. */

import { text } from "../../text";
import { Dialog } from "../controls/Dialog";

interface ConfirmRemovalProps {
  title: string;
  onCancel: () => void;
  onConfirm: () => void;
}

export function ConfirmRemoval({ title, onCancel, onConfirm }: ConfirmRemovalProps) {
  return (
    <Dialog label={text.list.removeHeading} className="confirm" onClose={onCancel}>
      <h2>{text.list.removeHeading}</h2>
      <p>{text.list.removeBody(title)}</p>
      <div className="confirm-bar">
        <button type="button" className="button" autoFocus onClick={onCancel}>
          {text.list.cancel}
        </button>
        <button type="button" className="button danger" onClick={onConfirm}>
          {text.list.removeYes}
        </button>
      </div>
    </Dialog>
  );
}
