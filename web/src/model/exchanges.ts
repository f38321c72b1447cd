/** Exchanges between agents in the view, as `src/palaver/core/exchanges.py` says it. Called by the fold alone. Pure. */

import type {
  Exchange,
  ExchangeReturned,
  ExchangeSent,
  Origin,
  QueueAdded,
  TurnStarted,
} from "../protocol/events.gen";

/** Exchanges that stay in view. Those whose answer is still to come always do. */
const KEEP = 200;
const ENDS: readonly string[] = ["complete", "failed", "cancelled"];

export function sent(exchanges: readonly Exchange[], event: ExchangeSent): Exchange[] {
  const mode = event.mode ?? "sync";
  return added(exchanges, {
    id: event.exchange,
    agent: event.agent,
    conversation: event.to ?? null,
    status: "sent",
    direction: "out",
    mode,
    call: event.call ?? null,
    callback: mode === "async",
    hops: event.hops ?? 0,
    started_at: event.ts,
    finished_at: null,
    tool_call_count: null,
  });
}

export function queued(exchanges: readonly Exchange[], event: QueueAdded): Exchange[] {
  if (!event.exchange || (event.trigger ?? "message") !== "message") return [...exchanges];
  return added(exchanges, cameIn(event.exchange, event.origin, "queued", event.hops ?? 0, event.ts));
}

export function begun(exchanges: readonly Exchange[], event: TurnStarted): Exchange[] {
  const { exchange, kind, hops } = event.trigger;
  if (!exchange || kind === "callback") return [...exchanges];
  if (exchanges.some((known) => known.id === exchange && known.direction === "in")) {
    return exchanges.map((known) =>
      known.id === exchange && known.direction === "in" ? { ...known, status: "started" } : known,
    );
  }
  return added(exchanges, cameIn(exchange, event.origin, "started", hops ?? 0, event.ts));
}

/** The first end is the end. */
export function told(exchanges: readonly Exchange[], event: ExchangeReturned): Exchange[] {
  return exchanges.map((known) => {
    if (known.id !== event.exchange || ENDS.includes(known.status)) return known;
    return {
      ...known,
      status: event.status,
      callback: known.callback || event.status === "queued",
      finished_at: ENDS.includes(event.status) ? event.ts : known.finished_at,
      tool_call_count: event.tool_call_count ?? known.tool_call_count,
    };
  });
}

function cameIn(
  id: string,
  origin: Origin | null | undefined,
  status: "queued" | "started",
  hops: number,
  ts: number,
): Exchange {
  return {
    id,
    direction: "in",
    agent: origin?.agent ?? "",
    conversation: origin?.conversation ?? null,
    status,
    mode: "sync",
    call: null,
    callback: false,
    hops,
    started_at: ts,
    finished_at: null,
    tool_call_count: null,
  };
}

function added(exchanges: readonly Exchange[], fresh: Exchange): Exchange[] {
  const surplus = exchanges.length + 1 - KEEP;
  const open = (known: Exchange): boolean => ["sent", "started", "queued"].includes(known.status);
  return [...exchanges.filter((known, place) => place >= surplus || open(known)), fresh];
}
