/** A plan the agent proposes: approve it, say what should change, or reject it. */

import { useCallback, useEffect, useMemo, useState } from "react";
import { text } from "../../text";
import { asking } from "../../text.asking";
import { approvalLines, planLines } from "../../model/approvaltext";
import { Icon } from "../controls/Icon";
import { usePicked, useStore } from "../store";
import { AnswerButton } from "./AnswerButton";
import { Expiry } from "./Approval";
import { ExactLines } from "./Exact";
import { NoteForm } from "./NoteForm";
import { useAnswerKeys, type RequestProps } from "./RequestCard";

/** How a plan may be carried out. Wider modes are chosen beside the message box, not in passing. */
const GOING_ON = ["ask", "accept_edits"] as const;

export function PlanRequest({ id, request, agent, hearing, keyed, reply, onTooSoon, read, onReading }: RequestProps) {
  const [revising, setRevising] = useState(false);
  const [mode, setMode] = useState<(typeof GOING_ON)[number]>("ask");
  const store = useStore();
  // In the inbox nobody else has it open.
  useEffect(() => {
    store.openConversation(id);
    return () => store.closeConversation(id);
  }, [store, id]);
  // A turn that still runs goes on in its own mode.
  const resting = usePicked(id, ({ state }) => state.turn === null) ?? false;
  const approve = useCallback(() => reply({ verdict: "allow", ...(resting ? { input: { mode } } : {}) }), [reply, resting, mode]);
  const onDigit = useCallback(
    (digit: string) => {
      if (digit === "1") approve();
      else if (digit === "2" && hearing === "open") setRevising(true);
      else if (digit === "3") reply({ verdict: "deny", then: "stop" });
      else return false;
      return true;
    },
    [reply, approve, hearing],
  );
  useAnswerKeys(keyed, onDigit);

  const { plan, preview } = request;
  // As it was written: what Markdown leaves out would be approved unseen.
  const parts = useMemo(() => [{ key: "plan", lines: plan ? planLines(plan) : approvalLines(preview, null) }], [plan, preview]);
  return (
    <>
      <h2 className="request-heading">
        <Icon name="plan" />
        <span>{asking.planRequest.asks(agent)}</span>
        {request.expires_at !== null && <Expiry at={request.expires_at} />}
      </h2>
      <ExactLines parts={parts} label={asking.plan.heading} className="request-exact is-prose" onReading={onReading} />
      {resting && !revising && (
        <fieldset className="choice-line">
          <legend>{asking.planRequest.mode}</legend>
          {GOING_ON.map((one) => (
            <label key={one} className="choice">
              <input type="radio" name="mode" checked={one === mode} onChange={() => setMode(one)} />
              <span>{text.composer.modes[one]}</span>
            </label>
          ))}
        </fieldset>
      )}
      {revising ? (
        <NoteForm
          label={asking.planRequest.reviseLabel}
          submit={asking.planRequest.reviseSend}
          onSubmit={(note) => reply({ verdict: "deny", text: note })}
          onCancel={() => setRevising(false)}
        />
      ) : (
        <div className="request-bar">
          <AnswerButton primary digit={keyed && 1} hearing={hearing} unread={!read} onTooSoon={onTooSoon} onClick={approve}>
            {asking.planRequest.approve}
          </AnswerButton>
          <AnswerButton digit={keyed && 2} hearing={hearing} onTooSoon={onTooSoon} onClick={() => setRevising(true)}>
            {asking.planRequest.revise}
          </AnswerButton>
          <AnswerButton digit={keyed && 3} hearing={hearing} onTooSoon={onTooSoon} onClick={() => reply({ verdict: "deny", then: "stop" })}>
            {asking.planRequest.reject}
          </AnswerButton>
        </div>
      )}
    </>
  );
}
