/** An approval: what exactly would run, what could go wrong, and the choices with their keys. */

import { useEffect, useState } from "react";
import type { Request, Scope } from "../../protocol/events.gen";
import { elapsed, text } from "../../text";
import { Icon } from "../controls/Icon";
import { Menu, type MenuAction } from "../controls/Menu";
import { useSeconds } from "../controls/now";
import { visible } from "../controls/visible";
import { DiffView } from "../diff/DiffView";
import { diffOfCall, isUnified, parseUnified } from "../diff/lines";
import { argument, kindOf, objectOf } from "../tools/say";
import { AnswerButton } from "./AnswerButton";
import { NoteForm } from "./NoteForm";
import type { RequestProps } from "./RequestDock";

const WIDTH: Record<Scope, number> = { once: 0, conversation: 1, agent: 2, project: 3 };

export function Approval({ request, agent, hearing, reply }: RequestProps) {
  const [noting, setNoting] = useState(false);
  const wider = request.scopes.filter((scope) => scope !== "once").toSorted((a, b) => WIDTH[a] - WIDTH[b]);
  const widest = wider.at(-1);

  useEffect(() => {
    const onKey = (event: KeyboardEvent): void => {
      if (!event.altKey || event.ctrlKey || event.metaKey || event.repeat) return;
      // By place on the keyboard: with Alt held, a Mac types other signs.
      if (event.code === "Digit1") reply({ verdict: "allow", scope: "once" });
      else if (event.code === "Digit2" && widest) reply({ verdict: "allow", scope: widest });
      else if (event.code === "Digit3") reply({ verdict: "deny" });
      else return;
      event.preventDefault();
    };
    window.addEventListener("keydown", onKey);
    return () => window.removeEventListener("keydown", onKey);
  }, [reply, widest]);

  const more: MenuAction[] = [
    ...wider
      .filter((scope) => scope !== widest)
      .map((scope): MenuAction => ({
        label: text.approval.scope[scope],
        icon: "check",
        onSelect: () => reply({ verdict: "allow", scope }),
      })),
    { label: text.approval.denyNote, icon: "edit", onSelect: () => setNoting(true) },
    { label: text.approval.denyStop, icon: "stop", danger: true, onSelect: () => reply({ verdict: "deny", then: "stop" }) },
  ];

  return (
    <>
      <h2 className="request-heading">
        <Icon name="shield" />
        <span>{text.approval.asks(agent, whatOf(request))}</span>
      </h2>
      <Exactly request={request} />
      <p className="request-meta">
        {request.risk && <span className="is-wait">{request.risk}</span>}
        {request.sandbox && <span>{text.approval.sandbox(request.sandbox)}</span>}
        {request.expires_at !== null && <Expiry at={request.expires_at} />}
      </p>
      {noting ? (
        <NoteForm
          label={text.approval.noteLabel}
          submit={text.approval.noteSend}
          onSubmit={(note) => reply({ verdict: "deny", text: note })}
          onCancel={() => setNoting(false)}
        />
      ) : (
        <div className="request-bar">
          <AnswerButton primary digit={1} hearing={hearing} onClick={() => reply({ verdict: "allow", scope: "once" })}>
            {text.approval.once}
          </AnswerButton>
          {widest && (
            <AnswerButton digit={2} hearing={hearing} onClick={() => reply({ verdict: "allow", scope: widest })}>
              {text.approval.scope[widest]}
            </AnswerButton>
          )}
          <AnswerButton digit={3} hearing={hearing} onClick={() => reply({ verdict: "deny" })}>
            {text.approval.deny}
          </AnswerButton>
          <Menu label={text.approval.more} actions={more} disabled={hearing !== "open"}>
            <Icon name="more" />
          </Menu>
        </div>
      )}
    </>
  );
}

/** The exact thing: a diff, or the command as it will run with its hidden characters made visible. */
function Exactly({ request }: { request: Request }) {
  const { preview, tool, input } = request;
  if (preview !== null && isUnified(preview)) return <DiffView label={request.title ?? ""} lines={parseUnified(preview)} />;
  const diff = preview === null && tool !== null ? diffOfCall(tool, input) : null;
  if (diff) return <DiffView label={diff.path} lines={diff.lines} />;
  const exact = preview ?? argument(input, "command", "cmd", "url") ?? JSON.stringify(input, null, 2);
  return (
    <pre className="request-exact" tabIndex={0} aria-label={text.approval.input}>
      {visible(exact)}
    </pre>
  );
}

function whatOf(request: Request): string {
  const { kinds } = text.approval;
  if (request.tool === null) return request.title ?? text.tool.unknown;
  const kind = kindOf(request.tool);
  if (kind === "edit" || kind === "write" || kind === "patch") {
    const object = visible(objectOf(request.tool, request.input));
    return object ? `${kinds[kind]}: ${object}` : kinds[kind];
  }
  if (kind === "shell" || kind === "fetch") return kinds[kind];
  return kinds.other(visible(request.tool));
}

export function Expiry({ at }: { at: number }) {
  const now = useSeconds();
  return <span className="request-expiry tabular">{text.approval.expires(elapsed(at - now))}</span>;
}
