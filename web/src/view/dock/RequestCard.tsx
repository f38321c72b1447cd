/**
 * One request of whatever kind, with the way its answer is sent. Stands in the dock and in the inbox, for a conversation that
 * is open or not. Deaf at first, and it shows it: what was meant for something else must not answer it.
 */

import { useCallback, useEffect, useState } from "react";
import { allows, mayAllow } from "../../model/approvaltext";
import type { CommandBody } from "../../model/store";
import type { Answer, Request, Scope } from "../../protocol/events.gen";
import { said } from "../../sentences";
import { asking } from "../../text.asking";
import { ask } from "../keys";
import { usePick, useStore } from "../store";
import { Approval } from "./Approval";
import type { Reading } from "./Exact";
import { MoneyCard } from "./MoneyCard";
import { PlanRequest } from "./PlanRequest";
import { QuestionCard } from "./QuestionCard";

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
  /** Whether the keys that answer are meant for this one: of several in sight, one. */
  keyed: boolean;
  reply: (reply: Reply) => void;
  /** Somebody pressed before it heard: it says so. */
  onTooSoon: () => void;
  /** Its end has been in sight; until then nothing is allowed. */
  read: boolean;
  onReading: (reading: Reading) => void;
}

interface RequestCardProps {
  id: string;
  request: Request;
  /** Who asks, as its heading says it. */
  agent: string;
  keyed?: boolean;
}

export function RequestCard({ id, request, agent, keyed = true }: RequestCardProps) {
  const { hearing, failed, missed, onTooSoon, reply, read, onReading } = useReply(id, request, keyed);
  const mayDecide = usePick(({ session }) => session.session?.roles.includes("decide") !== false);
  const props: RequestProps = { id, request, agent, hearing: mayDecide ? hearing : "sending", keyed, reply, onTooSoon, read, onReading };
  return (
    <>
      {request.kind === "approval" && (request.tool === null ? <MoneyCard {...props} /> : <Approval {...props} />)}
      {request.kind === "question" && <QuestionCard {...props} />}
      {request.kind === "plan" && <PlanRequest {...props} />}
      {!mayDecide && <p className="request-note">{asking.approval.notYours}</p>}
      {hearing === "sending" && <p className="request-note" role="status">{asking.approval.resolving}</p>}
      <Missed missed={missed} hearing={hearing} />
      {failed !== null && (
        <p className="request-note is-bad" role="alert">
          {failed}
        </p>
      )}
    </>
  );
}

/** Why a press was not taken for an answer. */
export function Missed({ missed, hearing }: { missed: false | "soon" | "unread"; hearing: Hearing }) {
  if (!missed || hearing === "sending") return null;
  return (
    <p className="request-note is-wait" role="status">
      {missed === "soon" ? asking.approval.tooSoon : asking.approval.unread}
    </p>
  );
}

export function labelOf({ kind, tool }: Request): string {
  if (kind === "approval") return tool === null ? asking.approval.spendLabel : asking.approval.label;
  return kind === "plan" ? asking.planRequest.ask : asking.question.label;
}

/** Answers a request once. The first answer in the log wins; if somebody else's did, the transcript says so. */
function useReply(id: string, request: Request, keyed: boolean) {
  const { send, ...answer } = useAnswer(id, keyed);
  const reply = useCallback(
    (given: Reply) => send({ type: "resolve_request", request: request.id, ...given }),
    [send, request.id],
  );
  return { ...answer, reply };
}

/**
 * Sends one answer, once it hears, and says why it was refused. Whenever the keys become its own it is deaf anew. Every answer goes
 * through here: none allows what has not been in sight to its end.
 */
export function useAnswer(id: string, keyed = true) {
  const store = useStore();
  const [hearing, setHearing] = useState<Hearing>("deaf");
  const [failed, setFailed] = useState<string | null>(null);
  const [missed, setMissed] = useState<false | "soon" | "unread">(false);
  const onTooSoon = useCallback(() => setMissed("soon"), []);
  const [read, setRead] = useState(false);
  const onReading = useCallback(({ rows, reached }: Reading) => {
    if (!mayAllow(rows, reached)) return;
    setRead(true);
    setMissed((now) => (now === "unread" ? false : now));
  }, []);
  useEffect(() => {
    setHearing((now) => (now === "sending" ? now : "deaf"));
    const timer = setTimeout(() => setHearing((now) => (now === "sending" ? now : "open")), DEAF_MS);
    return () => clearTimeout(timer);
  }, [keyed]);

  const send = useCallback(
    (body: CommandBody) => {
      if (hearing === "deaf") setMissed("soon");
      if (hearing !== "open") return;
      if (allows(body) && !read) {
        setMissed("unread");
        return;
      }
      // Whoever answered with a focused button would be left nowhere once the card is gone.
      if (document.activeElement?.matches(".dock .request :focus-visible")) ask("compose");
      setHearing("sending");
      setFailed(null);
      const command = store.command(id, body);
      store.answered(command).then(
        // Of a conversation that is not open, this is how its end is known at once.
        () => void store.loadRequests(),
        (error: unknown) => {
          store.discard(command);
          setHearing("open");
          setFailed(error instanceof Error && error.message ? said(error.message) : asking.approval.failed);
        },
      );
    },
    [store, id, hearing, read],
  );
  return { hearing, failed, missed, onTooSoon, send, read, onReading };
}

/** Alt with a digit answers, by its place on the keyboard: with Alt held, a Mac types other signs. */
export function useAnswerKeys(keyed: boolean, onDigit: (digit: string) => boolean): void {
  useEffect(() => {
    if (!keyed) return;
    const onKey = (event: KeyboardEvent): void => {
      if (!event.altKey || event.ctrlKey || event.metaKey || event.repeat) return;
      if (event.code.startsWith("Digit") && onDigit(event.code.slice(5))) event.preventDefault();
    };
    window.addEventListener("keydown", onKey);
    return () => window.removeEventListener("keydown", onKey);
  }, [keyed, onDigit]);
}
