/** Something final, asked once more. */

import { Dialog } from "../controls/Dialog";

interface ConfirmProps {
  heading: string;
  body: string;
  yes: string;
  no: string;
  /** It is being done. */
  busy?: boolean;
  refusal?: string | null;
  onYes: () => void;
  onNo: () => void;
}

export function Confirm({ heading, body, yes, no, busy = false, refusal = null, onYes, onNo }: ConfirmProps) {
  return (
    <Dialog label={heading} className="confirm" onClose={onNo}>
      <h2>{heading}</h2>
      <p>{body}</p>
      {refusal !== null && (
        <p className="is-bad" role="alert">
          {refusal}
        </p>
      )}
      <div className="confirm-bar">
        <button type="button" className="button" autoFocus onClick={onNo}>
          {no}
        </button>
        <button type="button" className="button danger" aria-disabled={busy} onClick={busy ? undefined : onYes}>
          {yes}
        </button>
      </div>
    </Dialog>
  );
}
