/** A plan the agent proposes: approve it, say what should change, or reject it. */

import { useEffect, useState } from "react";
import { text } from "../../text";
import { renderMarkdown } from "../../model/markdown";
import { Icon } from "../controls/Icon";
import { altKey } from "../keys";
import { Markdown } from "../transcript/Markdown";
import { NoteForm } from "./NoteForm";
import { PlanItems } from "./PlanLine";
import type { RequestProps } from "./RequestDock";

export function PlanRequest({ request, sending, reply }: RequestProps) {
  const [revising, setRevising] = useState(false);
  useEffect(() => {
    const onKey = (event: KeyboardEvent): void => {
      if (!event.altKey || event.ctrlKey || event.metaKey || event.repeat) return;
      if (event.code === "Digit1") reply({ verdict: "allow" });
      else if (event.code === "Digit2") setRevising(true);
      else if (event.code === "Digit3") reply({ verdict: "deny", then: "stop" });
      else return;
      event.preventDefault();
    };
    window.addEventListener("keydown", onKey);
    return () => window.removeEventListener("keydown", onKey);
  }, [reply]);

  const { plan } = request;
  return (
    <>
      <h2 className="request-heading">
        <Icon name="plan" />
        <span>{text.plan.ask}</span>
      </h2>
      <div className="request-scroll" tabIndex={0} role="group" aria-label={text.plan.heading}>
        {plan && <p className="plan-summary">{plan.summary}</p>}
        {plan && plan.items.length > 0 && <PlanItems items={plan.items} />}
        {plan?.text && <Markdown place={`plan:${request.id}`} parts={renderMarkdown(plan.text)} />}
        {!plan && request.preview && <p className="plan-summary">{request.preview}</p>}
      </div>
      {revising ? (
        <NoteForm
          label={text.plan.reviseLabel}
          submit={text.plan.reviseSend}
          onSubmit={(note) => reply({ verdict: "deny", text: note })}
          onCancel={() => setRevising(false)}
        />
      ) : (
        <div className="request-bar">
          <button type="button" className="button primary" disabled={sending} onClick={() => reply({ verdict: "allow" })}>
            {text.plan.approve} <kbd>{altKey}1</kbd>
          </button>
          <button type="button" className="button" disabled={sending} onClick={() => setRevising(true)}>
            {text.plan.revise} <kbd>{altKey}2</kbd>
          </button>
          <button type="button" className="button" disabled={sending} onClick={() => reply({ verdict: "deny", then: "stop" })}>
            {text.plan.reject} <kbd>{altKey}3</kbd>
          </button>
        </div>
      )}
    </>
  );
}
