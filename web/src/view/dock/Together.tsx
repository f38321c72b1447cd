/** Several calls that wait, decided at once. Each is shown whole, and an answer covers exactly those that were shown. */

import type { ReactNode } from "react";
import type { Request } from "../../protocol/events.gen";
import { asking } from "../../text.asking";
import { Icon } from "../controls/Icon";
import { visible } from "../controls/visible";
import { objectOf } from "../tools/say";
import { whatOf } from "./what";
import { ExactAll } from "./Exact";
import { Missed, useAnswer } from "./RequestCard";

interface TogetherProps {
  id: string;
  requests: readonly Request[];
  /** The one whose card is below. */
  shown: string;
  onShow: (request: string) => void;
}

export function Together({ id, requests, shown, onShow }: TogetherProps) {
  const { hearing, failed, missed, send, read, onReading } = useAnswer(id);
  const decide = (accepted: boolean): void => {
    const decisions = requests.map((request) => ({ call: request.call ?? "", accepted }));
    send({ type: "decide_tools", decisions, accepted, then: "continue" });
  };
  const heading = (request: Request): ReactNode => (
    <button
      type="button"
      className="together-item ellipsis"
      aria-current={request.id === shown || undefined}
      onClick={() => onShow(request.id)}
    >
      {lineOf(request)}
    </button>
  );
  return (
    <div className="together" role="group" aria-label={asking.approval.togetherLabel}>
      <p className="request-heading">
        <Icon name="shield" />
        <span>{asking.approval.together(requests.length)}</span>
      </p>
      <ExactAll requests={requests} heading={heading} onReading={onReading} />
      <div className="request-bar">
        <button
          type="button"
          className="button"
          aria-disabled={hearing === "deaf" || !read || undefined}
          title={read ? undefined : asking.approval.unread}
          disabled={hearing === "sending"}
          onClick={() => decide(true)}
        >
          {asking.approval.allowAll(requests.length)}
        </button>
        <button
          type="button"
          className="button"
          aria-disabled={hearing === "deaf" || undefined}
          disabled={hearing === "sending"}
          onClick={() => decide(false)}
        >
          {asking.approval.denyAll}
        </button>
      </div>
      <Missed missed={missed} hearing={hearing} />
      {failed !== null && (
        <p className="request-note is-bad" role="alert">
          {failed}
        </p>
      )}
    </div>
  );
}

function lineOf(request: Request): string {
  if (request.title) return visible(request.title);
  const object = request.tool === null ? "" : visible(objectOf(request.tool, request.input));
  return object || whatOf(request);
}
