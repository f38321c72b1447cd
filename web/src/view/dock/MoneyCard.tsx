/** A limit of spending is reached: how much it was, how far a yes goes, and the two answers. */

import { useCallback } from "react";
import { asking } from "../../text.asking";
import { Icon } from "../controls/Icon";
import { visible } from "../controls/visible";
import { AnswerButton } from "./AnswerButton";
import { Expiry } from "./Approval";
import { useAnswerKeys, type RequestProps } from "./RequestCard";

export function MoneyCard({ request, hearing, keyed, reply, onTooSoon }: RequestProps) {
  const onDigit = useCallback(
    (digit: string) => {
      if (digit === "1") reply({ verdict: "allow" });
      else if (digit === "3") reply({ verdict: "deny" });
      else return false;
      return true;
    },
    [reply],
  );
  useAnswerKeys(keyed, onDigit);

  return (
    <>
      <h2 className="request-heading">
        <Icon name="coin" />
        <span>{visible(request.title ?? asking.approval.spendLabel)}</span>
      </h2>
      {request.preview && <p className="money-words">{visible(request.preview)}</p>}
      <p className="request-meta">
        {request.risk && <span className="is-wait">{visible(request.risk)}</span>}
        {request.expires_at !== null && <Expiry at={request.expires_at} />}
      </p>
      <div className="request-bar">
        <AnswerButton primary digit={keyed && 1} hearing={hearing} onTooSoon={onTooSoon} onClick={() => reply({ verdict: "allow" })}>
          {asking.approval.spendYes}
        </AnswerButton>
        <AnswerButton digit={keyed && 3} hearing={hearing} onTooSoon={onTooSoon} onClick={() => reply({ verdict: "deny" })}>
          {asking.approval.spendNo}
        </AnswerButton>
      </div>
    </>
  );
}
