/** Full access is given once more: nothing asks after it. */

import { text } from "../../text";
import { Dialog } from "../controls/Dialog";

interface ConfirmFullProps {
  /** Why the server did not accept it. */
  refusal: string | null;
  onCancel: () => void;
  onConfirm: () => void;
}

export default function ConfirmFull({ refusal, onCancel, onConfirm }: ConfirmFullProps) {
  return (
    <Dialog label={text.modes.fullHeading} className="confirm" onClose={onCancel}>
      <h2>{text.modes.fullHeading}</h2>
      <p>{text.modes.fullBody}</p>
      <p>{text.modes.fullFlag}</p>
      {refusal !== null && (
        <p className="is-bad" role="alert">
          {refusal}
        </p>
      )}
      <div className="confirm-bar">
        <button type="button" className="button" autoFocus onClick={onCancel}>
          {text.modes.fullNo}
        </button>
        <button type="button" className="button danger" onClick={onConfirm}>
          {text.modes.fullYes}
        </button>
      </div>
    </Dialog>
  );
}
