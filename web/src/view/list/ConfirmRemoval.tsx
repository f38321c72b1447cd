/** Deleting is final for every device, so it is asked once more. */

import { later } from "../../text.later";
import { Dialog } from "../controls/Dialog";

interface ConfirmRemovalProps {
  title: string;
  onCancel: () => void;
  onConfirm: () => void;
}

export default function ConfirmRemoval({ title, onCancel, onConfirm }: ConfirmRemovalProps) {
  return (
    <Dialog label={later.removal.heading} className="confirm" onClose={onCancel}>
      <h2>{later.removal.heading}</h2>
      <p>{later.removal.body(title)}</p>
      <div className="confirm-bar">
        <button type="button" className="button" autoFocus onClick={onCancel}>
          {later.removal.no}
        </button>
        <button type="button" className="button danger" onClick={onConfirm}>
          {later.removal.yes}
        </button>
      </div>
    </Dialog>
  );
}
