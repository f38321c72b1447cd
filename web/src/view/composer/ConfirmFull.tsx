/** Full access is given once more: nothing asks after it. */

import { asking } from "../../text.asking";
import { Dialog } from "../controls/Dialog";

interface ConfirmFullProps {
  /** Why the server did not accept it. */
  refusal: string | null;
  onCancel: () => void;
  onConfirm: () => void;
}

export default function ConfirmFull({ refusal, onCancel, onConfirm }: ConfirmFullProps) {
  return (
    <Dialog label={asking.full.heading} className="confirm" onClose={onCancel}>
      <h2>{asking.full.heading}</h2>
      <p>{asking.full.body}</p>
      {refusal !== null && (
        <p className="is-bad" role="alert">
          {refusal}
        </p>
      )}
      <div className="confirm-bar">
        <button type="button" className="button" autoFocus onClick={onCancel}>
          {asking.full.no}
        </button>
        <button type="button" className="button danger" onClick={onConfirm}>
          {asking.full.yes}
        </button>
      </div>
    </Dialog>
  );
}
