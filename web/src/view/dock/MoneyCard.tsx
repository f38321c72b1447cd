/** A limit of spending is reached: how much it was, how far a yes goes, and the two answers. */

import { useCallback } from "react";
import { asking } from "../../text.asking";
import { Drawing } from "../controls/Icon";
import { visible } from "../controls/visible";
import { AnswerButton } from "./AnswerButton";
import { Expiry } from "./Approval";
import { Reader } from "./Exact";
import { useAnswerKeys, type RequestProps } from "./RequestCard";

const COIN = "M8 2.5a5.5 5.5 0 1 0 0 11 5.5 5.5 0 0 0 0-11zM9.7 6.2C9.4 5.5 8.8 5.2 8 5.2c-1 0-1.7.5-1.7 1.3 0 1.9 3.5.9 3.5 2.9 0 .9-.8 1.4-1.8 1.4-.9 0-1.6-.4-1.9-1.2M8 4.2v1M8 10.8v1";

export function MoneyCard({ request, hearing, keyed, reply, onTooSoon, read, onReading }: RequestProps) {
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
        <Drawing path={COIN} />
        <span>{visible(request.title ?? asking.approval.spendLabel)}</span>
      </h2>
      <Reader label={asking.approval.spendLabel} onReading={onReading}>
        {request.preview && <p className="money-words">{visible(request.preview)}</p>}
      </Reader>
      <p className="request-meta">
        {request.risk && <span className="is-wait">{visible(request.risk)}</span>}
        {request.expires_at !== null && <Expiry at={request.expires_at} />}
      </p>
      <div className="request-bar">
        <AnswerButton primary digit={keyed && 1} hearing={hearing} unread={!read} onTooSoon={onTooSoon} onClick={() => reply({ verdict: "allow" })}>
          {asking.approval.spendYes}
        </AnswerButton>
        <AnswerButton digit={keyed && 3} hearing={hearing} onTooSoon={onTooSoon} onClick={() => reply({ verdict: "deny" })}>
          {asking.approval.spendNo}
        </AnswerButton>
      </div>
    </>
  );
}
