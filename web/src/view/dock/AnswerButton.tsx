/** A button that answers a request. It shows when it is not heard: too new, or answered already. */

import type { ReactNode } from "react";
import { asking } from "../../text.asking";
import { altKey } from "../keys";
import type { Hearing } from "./RequestCard";

interface AnswerButtonProps {
  hearing: Hearing;
  /** It allows something whose end has not been in sight. */
  unread?: boolean;
  primary?: boolean;
  /** The digit that does the same, with Alt; none where the keys are meant for another request. */
  digit: 1 | 2 | 3 | false;
  onClick: () => void;
  /** Pressed before it heard. */
  onTooSoon: () => void;
  children: ReactNode;
}

export function AnswerButton({ hearing, unread = false, primary = false, digit, onClick, onTooSoon, children }: AnswerButtonProps) {
  return (
    <button
      type="button"
      className={primary ? "button primary" : "button"}
      // While it is too new it can be focused: whoever tabs to it must not lose the way.
      aria-disabled={hearing === "deaf" || unread || undefined}
      title={unread ? asking.approval.unread : undefined}
      disabled={hearing === "sending"}
      onClick={hearing === "open" ? onClick : onTooSoon}
    >
      {children}{" "}
      {digit && (
        <kbd>
          {altKey}
          {digit}
        </kbd>
      )}
    </button>
  );
}
