/** How requests open and end. Called by the fold alone. Pure. */

import type { Request, RequestOpened, RequestResolved, Resolution } from "../protocol/events.gen";

/** Resolved requests that stay in view: enough for every late decider to be told. */
const KEEP_RESOLVED = 32;

export function find(requests: readonly Request[], id: string): Request | undefined {
  return requests.find((known) => known.id === id);
}

export function opened(event: RequestOpened): Request {
  return {
    id: event.request,
    kind: event.kind,
    ts: event.ts,
    status: "open",
    turn: event.turn ?? null,
    call: event.call ?? null,
    agent: event.agent ?? null,
    tool: event.tool ?? null,
    input: event.input ?? null,
    hash: event.hash ?? null,
    title: event.title ?? null,
    risk: event.risk ?? null,
    sandbox: event.sandbox ?? null,
    preview: event.preview ?? null,
    scopes: event.scopes ?? ["once"],
    offers: event.offers ?? [],
    questions: event.questions ?? [],
    plan: event.plan ?? null,
    expires_at: event.expires_at ?? null,
    resolution: null,
  };
}

export function resolved(requests: readonly Request[], event: RequestResolved): Request[] {
  const resolution: Resolution = {
    status: event.status,
    ts: event.ts,
    verdict: event.verdict ?? null,
    then: event.then ?? "continue",
    scope: event.scope ?? "once",
    offer: event.offer ?? 0,
    answers: event.answers ?? [],
    text: event.text ?? null,
    input: event.input ?? null,
    by: event.origin ?? null,
  };
  return bounded(
    requests.map((known) => (known.id === event.request ? { ...known, status: event.status, resolution } : known)),
  );
}

function bounded(requests: Request[]): Request[] {
  let surplus = requests.filter((known) => known.status !== "open").length - KEEP_RESOLVED;
  return requests.filter((known) => known.status === "open" || surplus-- <= 0);
}
