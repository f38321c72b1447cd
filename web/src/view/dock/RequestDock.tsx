/**
 * What waits for a person, above the composer: the oldest first, one at a time. It never takes the focus, and it is deaf at
 * first and shows it: what was meant for the text field must not answer it.
 */

import { useCallback, useEffect, useState } from "react";
import type { CommandBody } from "../../model/store";
import type { Answer, Request, Scope } from "../../protocol/events.gen";
import { said } from "../../text";
import { later } from "../../text.later";
import { useAgentName } from "../agents";
import { Icon } from "../controls/Icon";
import { ask } from "../keys";
import { usePicked, useStore } from "../store";
import { Approval } from "./Approval";
import { MoneyCard } from "./MoneyCard";
import { PlanRequest } from "./PlanRequest";
import { QuestionCard } from "./QuestionCard";
import { Together } from "./Together";

// Longer than the last keystroke of somebody who did not see it come.
const DEAF_MS = 400;

export interface Reply {
  verdict?: "allow" | "deny";
  then?: "continue" | "stop";
  scope?: Scope;
  /** Which of the request's offers a lasting yes takes up. */
  offer?: number;
  answers?: Answer[];
  text?: string;
  input?: unknown;
}

/** `deaf`: too new to be answered; `sending`: answered already. */
export type Hearing = "deaf" | "open" | "sending";

export interface RequestProps {
  /** The conversation. */
  id: string;
  request: Request;
  agent: string;
  hearing: Hearing;
  reply: (reply: Reply) => void;
}

const NONE: readonly Request[] = [];

export default function RequestDock({ id }: { id: string }) {
  const agent = usePicked(id, ({ state }) => state.agent) ?? "";
  const requests = usePicked(id, ({ state }) => state.requests) ?? NONE;
  const paused = usePicked(id, ({ state }) => state.status === "paused") ?? false;
  const open = requests.filter((request) => request.status === "open");
  const waiting = open.filter((request) => request.kind === "approval" && request.call !== null);
  const [wanted, setWanted] = useState<string | null>(null);
  const at = Math.max(
    0,
    open.findIndex((request) => request.id === wanted),
  );
  const request = open[at];
  if (!request) return null;
  const turn = (by: number): void => setWanted(open[(at + by + open.length) % open.length]?.id ?? null);
  return (
    <section className="request" aria-label={labelOf(request)} data-region tabIndex={-1}>
      {open.length > 1 && (
        <div className="request-place">
          <button type="button" className="icon-button small" aria-label={later.approval.earlier} onClick={() => turn(-1)}>
            <Icon name="back" />
          </button>
          <span className="tabular">{later.approval.place(at + 1, open.length)}</span>
          <button type="button" className="icon-button small" aria-label={later.approval.later} onClick={() => turn(1)}>
            <Icon name="chevron" />
          </button>
        </div>
      )}
      {paused && waiting.length > 1 && (
        <Together key={waiting.map((one) => one.id).join()} id={id} requests={waiting} shown={request.id} onShow={setWanted} />
      )}
      <Card key={request.id} id={id} agent={request.agent ?? agent} request={request} />
    </section>
  );
}

function labelOf({ kind, tool }: Request): string {
  if (kind === "approval") return tool === null ? later.approval.spendLabel : later.approval.label;
  return kind === "plan" ? later.planRequest.ask : later.question.label;
}

function Card({ id, agent, request }: { id: string; agent: string; request: Request }) {
  const { hearing, failed, reply } = useReply(id, request);
  const props: RequestProps = { id, request, agent: useAgentName(agent), hearing, reply };
  return (
    <>
      {request.kind === "approval" && (request.tool === null ? <MoneyCard {...props} /> : <Approval {...props} />)}
      {request.kind === "question" && <QuestionCard {...props} />}
      {request.kind === "plan" && <PlanRequest {...props} />}
      {hearing === "sending" && <p className="request-note" role="status">{later.approval.resolving}</p>}
      {failed !== null && (
        <p className="request-note is-bad" role="alert">
          {failed}
        </p>
      )}
    </>
  );
}

/** Answers a request once. The first answer in the log wins; if somebody else's did, the transcript says so. */
function useReply(id: string, request: Request) {
  const { hearing, failed, send } = useAnswer(id);
  const reply = useCallback(
    (answer: Reply) => send({ type: "resolve_request", request: request.id, ...answer }),
    [send, request.id],
  );
  return { hearing, failed, reply };
}

/** Sends one answer, once it hears, and says why it was refused. */
export function useAnswer(id: string) {
  const store = useStore();
  const [hearing, setHearing] = useState<Hearing>("deaf");
  const [failed, setFailed] = useState<string | null>(null);
  useEffect(() => {
    const timer = setTimeout(() => setHearing("open"), DEAF_MS);
    return () => clearTimeout(timer);
  }, []);

  const send = useCallback(
    (body: CommandBody) => {
      if (hearing !== "open") return;
      // Whoever answered with a focused button would be left nowhere once the card is gone.
      if (document.activeElement?.matches(".request :focus-visible")) ask("compose");
      setHearing("sending");
      setFailed(null);
      const command = store.command(id, body);
      store.answered(command).catch((error: unknown) => {
        store.discard(command);
        setHearing("open");
        setFailed(error instanceof Error && error.message ? said(error.message) : later.approval.failed);
      });
    },
    [store, id, hearing],
  );
  return { hearing, failed, send };
}
