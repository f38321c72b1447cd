/** A limit of spending is reached: how much it was, how far a yes goes, and the two answers. */

import { useEffect } from "react";
import { later } from "../../text.later";
import { Icon } from "../controls/Icon";
import { AnswerButton } from "./AnswerButton";
import { Expiry } from "./Approval";
import type { RequestProps } from "./RequestDock";

export function MoneyCard({ request, hearing, reply }: RequestProps) {
  useEffect(() => {
    const onKey = (event: KeyboardEvent): void => {
      if (!event.altKey || event.ctrlKey || event.metaKey || event.repeat) return;
      if (event.code === "Digit1") reply({ verdict: "allow" });
      else if (event.code === "Digit3") reply({ verdict: "deny" });
      else return;
      event.preventDefault();
    };
    window.addEventListener("keydown", onKey);
    return () => window.removeEventListener("keydown", onKey);
  }, [reply]);

  return (
    <>
      <h2 className="request-heading">
        <Icon name="coin" />
        <span>{request.title ?? later.approval.spendLabel}</span>
      </h2>
      {request.preview && <p className="money-words">{request.preview}</p>}
      <p className="request-meta">
        {request.risk && <span className="is-wait">{request.risk}</span>}
        {request.expires_at !== null && <Expiry at={request.expires_at} />}
      </p>
      <div className="request-bar">
        <AnswerButton primary digit={1} hearing={hearing} onClick={() => reply({ verdict: "allow" })}>
          {later.approval.spendYes}
        </AnswerButton>
        <AnswerButton digit={3} hearing={hearing} onClick={() => reply({ verdict: "deny" })}>
          {later.approval.spendNo}
        </AnswerButton>
      </div>
    </>
  );
}
