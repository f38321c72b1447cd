/** An approval: what exactly would run, what could go wrong, and the choices with their keys. */

import { useCallback, useState } from "react";
import { offerText } from "../../model/approvaltext";
import type { Offer, Scope } from "../../protocol/events.gen";
import { elapsed } from "../../measures";
import { asking } from "../../text.asking";
import { Icon } from "../controls/Icon";
import { Menu, type MenuAction } from "../controls/Menu";
import { useSeconds } from "../controls/now";
import { usePick } from "../store";
import { AnswerButton } from "./AnswerButton";
import { Exact } from "./Exact";
import { NoteForm } from "./NoteForm";
import { useAnswerKeys, type RequestProps } from "./RequestCard";
import { whatOf } from "./what";

const WIDTH: Record<Scope, number> = { once: 0, conversation: 1, agent: 2, project: 3 };

type Stage = "choosing" | "always" | "noting";

export function Approval({ request, agent, hearing, keyed, reply, onTooSoon, read, onReading }: RequestProps) {
  const [stage, setStage] = useState<Stage>("choosing");
  // A yes beyond the conversation takes a token that may change agents.
  const mayChangeAgents = usePick(({ session }) => session.session?.roles.includes("admin") !== false);
  const wider = request.scopes
    .filter((scope) => scope !== "once" && (mayChangeAgents || scope === "conversation"))
    .toSorted((a, b) => WIDTH[a] - WIDTH[b]);
  const [narrowest] = wider;
  // One place to allow it, and nothing to say of what that covers, need no further question.
  const isPlain = wider.length === 1 && request.offers.length === 0;

  const onDigit = useCallback(
    (digit: string) => {
      if (digit === "1") reply({ verdict: "allow", scope: "once" });
      else if (digit === "2" && narrowest && isPlain) reply({ verdict: "allow", scope: narrowest });
      else if (digit === "2" && narrowest && hearing === "open") setStage("always");
      else if (digit === "3") reply({ verdict: "deny" });
      else return false;
      return true;
    },
    [reply, narrowest, isPlain, hearing],
  );
  useAnswerKeys(keyed, onDigit);

  const more: MenuAction[] = [
    { label: asking.approval.denyNote, icon: "edit", onSelect: () => setStage("noting") },
    { label: asking.approval.denyStop, icon: "stop", danger: true, onSelect: () => reply({ verdict: "deny", then: "stop" }) },
  ];

  return (
    <>
      <h2 className="request-heading">
        <Icon name="shield" />
        <span>{asking.approval.asks(agent, whatOf(request))}</span>
      </h2>
      <Exact request={request} onReading={onReading} />
      <p className="request-meta">
        {request.risk && <span className="is-wait">{offerText(request.risk, null)}</span>}
        {request.sandbox && <span>{asking.approval.sandbox(request.sandbox)}</span>}
        {request.expires_at !== null && <Expiry at={request.expires_at} />}
      </p>
      {stage === "noting" && (
        <NoteForm
          label={asking.approval.noteLabel}
          submit={asking.approval.noteSend}
          onSubmit={(note) => reply({ verdict: "deny", text: note })}
          onCancel={() => setStage("choosing")}
        />
      )}
      {stage === "always" && (
        <Always
          scopes={wider}
          offers={request.offers}
          read={read}
          onAllow={(scope, offer) => reply({ verdict: "allow", scope, offer })}
          onCancel={() => setStage("choosing")}
        />
      )}
      {stage === "choosing" && (
        <div className="request-bar">
          <AnswerButton primary digit={keyed && 1} hearing={hearing} unread={!read} onTooSoon={onTooSoon} onClick={() => reply({ verdict: "allow", scope: "once" })}>
            {asking.approval.once}
          </AnswerButton>
          {narrowest && (
            <AnswerButton
              digit={keyed && 2}
              hearing={hearing}
              unread={isPlain && !read}
              onTooSoon={onTooSoon}
              onClick={() => (isPlain ? reply({ verdict: "allow", scope: narrowest }) : setStage("always"))}
            >
              {isPlain ? asking.approval.scope[narrowest] : asking.approval.always}
            </AnswerButton>
          )}
          <AnswerButton digit={keyed && 3} hearing={hearing} onTooSoon={onTooSoon} onClick={() => reply({ verdict: "deny" })}>
            {asking.approval.deny}
          </AnswerButton>
          <Menu label={asking.approval.more} actions={more} disabled={hearing !== "open"}>
            <Icon name="more" />
          </Menu>
        </div>
      )}
    </>
  );
}

interface AlwaysProps {
  /** Narrowest first, as the offers are. */
  scopes: readonly Scope[];
  offers: readonly Offer[];
  read: boolean;
  onAllow: (scope: Scope, offer: number) => void;
  onCancel: () => void;
}

/** A lasting yes: to what, and where. The narrowest of both is chosen until somebody widens it. */
function Always({ scopes, offers, read, onAllow, onCancel }: AlwaysProps) {
  const [offer, setOffer] = useState(0);
  const [scope, setScope] = useState<Scope>(scopes[0] ?? "conversation");
  return (
    <form
      className="always"
      onSubmit={(event) => {
        event.preventDefault();
        onAllow(scope, offer);
      }}
      onKeyDown={(event) => {
        if (event.key !== "Escape") return;
        event.preventDefault();
        event.stopPropagation();
        onCancel();
      }}
    >
      {offers.length > 0 && (
        <fieldset className="question">
          <legend>{asking.approval.alwaysWhat}</legend>
          {offers.map(({ label, match }, at) => (
            <label key={at} className="option">
              <input type="radio" name="offer" autoFocus={at === 0} checked={at === offer} onChange={() => setOffer(at)} />
              <span className="option-label">{offerText(label, match)}</span>
            </label>
          ))}
        </fieldset>
      )}
      <fieldset className="question">
        <legend>{asking.approval.alwaysWhere}</legend>
        {scopes.map((one, at) => (
          <label key={one} className="option">
            <input
              type="radio"
              name="scope"
              autoFocus={offers.length === 0 && at === 0}
              checked={one === scope}
              onChange={() => setScope(one)}
            />
            <span className="option-label">{asking.approval.where[one]}</span>
          </label>
        ))}
      </fieldset>
      <div className="request-bar">
        <button type="submit" className="button primary" aria-disabled={!read || undefined} title={read ? undefined : asking.approval.unread}>
          {asking.approval.alwaysYes}
        </button>
        <button type="button" className="button quiet" onClick={onCancel}>
          {asking.approval.back}
        </button>
      </div>
    </form>
  );
}

export function Expiry({ at }: { at: number }) {
  const now = useSeconds();
  return <span className="request-expiry tabular">{asking.approval.expires(elapsed(at - now))}</span>;
}
