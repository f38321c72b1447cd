/** A turn in the view: how it begins, what it does and costs, how it ended, as `src/palaver/core/fold/turns.py`. Called by the fold, and by whatever says what a turn does. Pure. */

import type {
  AnswerFinished,
  ContextCompressed,
  ModelSwitched,
  Turn,
  TurnFinished,
  TurnInterrupted,
  TurnStarted,
  TurnStatus,
  TurnSummary,
  Usage,
} from "../protocol/events.gen";

/** How a turn ends when it did not simply come to its end. */
export const ENDS_TO_BE_SEEN: ReadonlySet<TurnSummary["outcome"]> = new Set(["failed", "interrupted", "limited"]);

/** Outcomes that are the status of a conversation at rest. */
export const SEEN_AT_REST: ReadonlySet<TurnSummary["outcome"]> = new Set(["task", "failed"]);

export function started(event: TurnStarted): Turn {
  return {
    id: event.turn ?? "",
    agent: event.agent,
    backend: event.backend,
    model: event.model ?? null,
    started_at: event.ts,
    // What a log of before it was thought of does not say.
    trigger: { ...event.trigger, hops: event.trigger.hops ?? 0 },
    resumable: event.resumable ?? false,
    steerable: event.steerable ?? false,
    mode: event.mode ?? null,
    activity: "thinking",
    detail: null,
    retry: null,
    usage: {},
    cost_usd: 0,
    switch: null,
    yielding: false,
  };
}

export function busyWith(turn: Turn, { status, detail = null, retry = null, yielding = false }: TurnStatus): Turn {
  return { ...turn, activity: status, detail, retry, yielding: turn.yielding || yielding };
}

export function switched(turn: Turn, { to_model, from_model = null, reason = "" }: ModelSwitched): Turn {
  return { ...turn, model: to_model, switch: { to_model, from_model, reason } };
}

export function spent(turn: Turn, event: AnswerFinished | ContextCompressed): Turn {
  if (!event.usage && !event.cost_usd) return turn;
  return { ...turn, usage: summed(turn.usage, event.usage ?? {}), cost_usd: turn.cost_usd + (event.cost_usd ?? 0) };
}

export function ended({ mode }: Turn, event: TurnFinished | TurnInterrupted): TurnSummary {
  const finished = event.type === "turn.finished" ? event : null;
  return {
    id: event.turn ?? "",
    outcome: finished ? finished.outcome : "interrupted",
    ended_at: event.ts,
    stopped: event.type === "turn.interrupted" ? event.reason : null,
    by: event.origin ?? null,
    error: finished?.error ?? null,
    summary: finished?.summary ?? null,
    duration_ms: event.duration_ms ?? null,
    mode,
  };
}

/** A turn whose end was taken out of the history: it has been, and neither failed nor completed a task. */
export function withoutOutcome(summary: TurnSummary): TurnSummary {
  return { ...summary, outcome: "completed", error: null, summary: null };
}

const COUNTS = ["input_tokens", "output_tokens", "cached_tokens", "reasoning_tokens"] as const;

/** Zero counts are left out, as on the wire. */
export function summed(one: Usage, other: Usage): Usage {
  const sum: Usage = {};
  for (const name of COUNTS) {
    const count = (one[name] ?? 0) + (other[name] ?? 0);
    if (count !== 0) sum[name] = count;
  }
  return sum;
}

/** What the server calls it while it makes a long history fit the model. */
export function isCompacting(turn: Turn | null): boolean {
  return turn?.detail === "compressing";
}
