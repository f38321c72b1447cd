/** Several calls that wait, decided at once. Each is named, and an answer covers exactly those that were shown. */

import type { Request } from "../../protocol/events.gen";
import { asking } from "../../text.asking";
import { Icon } from "../controls/Icon";
import { visible } from "../controls/visible";
import { objectOf } from "../tools/say";
import { whatOf } from "./what";
import { useAnswer } from "./RequestCard";

interface TogetherProps {
  id: string;
  requests: readonly Request[];
  /** The one whose card is below. */
  shown: string;
  onShow: (request: string) => void;
}

export function Together({ id, requests, shown, onShow }: TogetherProps) {
  const { hearing, failed, missed, send } = useAnswer(id);
  const decide = (accepted: boolean): void => {
    const decisions = requests.map((request) => ({ call: request.call ?? "", accepted }));
    send({ type: "decide_tools", decisions, accepted, then: "continue" });
  };
  return (
    <div className="together" role="group" aria-label={asking.approval.togetherLabel}>
      <p className="request-heading">
        <Icon name="shield" />
        <span>{asking.approval.together(requests.length)}</span>
      </p>
      <ol className="together-list">
        {requests.map((request) => (
          <li key={request.id}>
            <button
              type="button"
              className="together-item ellipsis"
              aria-current={request.id === shown || undefined}
              onClick={() => onShow(request.id)}
            >
              {lineOf(request)}
            </button>
          </li>
        ))}
      </ol>
      <div className="request-bar">
        <button
          type="button"
          className="button"
          aria-disabled={hearing === "deaf" || undefined}
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
      {missed && hearing !== "sending" && <p className="request-note is-wait" role="status">{asking.approval.tooSoon}</p>}
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
