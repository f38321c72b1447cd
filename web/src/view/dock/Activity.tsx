/** What the running turn does, in words and time. Nothing runs, nothing is said. */

import { useEffect, useRef } from "react";
import type { OpenConversation } from "../../model/store";
import { isCompacting } from "../../model/turns";
import type { Turn } from "../../protocol/events.gen";
import { elapsed, money } from "../../measures";
import { said } from "../../sentences";
import { text } from "../../text";
import { later } from "../../text.later";
import { useSeconds } from "../controls/now";
import { visible } from "../controls/visible";
import { usePick, usePicked, useWaitsBelow } from "../store";
import { sayTool } from "../tools/say";

// Silence that is worth a word. Tools and people may take longer; they are shown as what they are.
const STALLED_MS = 30_000;

export default function Activity({ id }: { id: string }) {
  const conversation = usePicked(id, (known) => (known.state.turn ? known : undefined));
  const turn = conversation?.state.turn;
  return conversation && turn ? <Line conversation={conversation} turn={turn} /> : null;
}

function Line({ conversation, turn }: { conversation: OpenConversation; turn: Turn }) {
  const now = useSeconds();
  const { state, rows, outbox } = conversation;
  // Without a connection this is what was last heard, not what happens now.
  const lost = usePick(({ connection }) => connection.kind === "reconnecting" || connection.kind === "offline");
  const retrySeen = useFirstSeen(turn.retry, now);
  const row = rows.at(-1);
  const activity = row?.kind === "activity" ? row : null;
  const waiting = useWaitsBelow(conversation.id) || (activity?.waiting ?? null) !== null;
  const words = wordsOf();
  const silent = now - state.updated_at;
  const stalled = !lost && !waiting && !turn.retry && !isCompacting(turn) && activity?.tool?.status !== "running" && silent > STALLED_MS;

  function wordsOf(): { what: string; since: number | null } {
    const isStopping = outbox.some(({ command, status }) => command.type === "interrupt" && status !== "failed");
    if (isStopping) return { what: later.activity.stopping, since: null };
    if (waiting) return { what: later.activity.waiting, since: null };
    if (state.status === "waiting_ide") return { what: later.activity.waitingEditor, since: null };
    return turn.retry ? { what: sayRetry(turn, now - retrySeen), since: null } : sayDoing(conversation, turn);
  }

  const phase = useRef({ what: words.what, since: turn.started_at });
  if (phase.current.what !== words.what) phase.current = { what: words.what, since: now };
  const since = words.since ?? phase.current.since;
  const { input_tokens = 0, output_tokens = 0 } = turn.usage;

  return (
    <div className={`activity${waiting ? " is-wait" : ""}${lost ? " is-stale" : ""}`} role="group" aria-label={later.activity.label}>
      <span className="activity-main">
        <span className={waiting ? "pulse wait" : "pulse"} />
        <span className={turn.retry ? "activity-what" : "activity-what ellipsis"}>{words.what}</span>
      </span>
      {!turn.retry && !waiting && <span className="activity-time tabular">{elapsed(now - since)}</span>}
      {stalled && <span className="activity-extra is-wait">{later.activity.stalled(elapsed(silent))}</span>}
      <span className="activity-end tabular">
        {text.join(
          turn.cost_usd > 0 && money(turn.cost_usd),
          input_tokens + output_tokens > 0 && later.activity.tokens(input_tokens, output_tokens),
        )}
      </span>
    </div>
  );
}

/** When this page first saw a thing: the log does not date it. */
function useFirstSeen(thing: unknown, now: number): number {
  const seen = useRef({ thing, at: now });
  useEffect(() => {
    if (seen.current.thing !== thing) seen.current = { thing, at: Date.now() };
  }, [thing]);
  return seen.current.thing === thing ? seen.current.at : now;
}

function sentence(words: string): string {
  return words.charAt(0).toUpperCase() + words.slice(1);
}

function sayRetry({ retry }: Turn, passedMs: number): string {
  if (!retry) return "";
  const left = Math.ceil(retry.after_s - passedMs / 1000);
  const words = left > 0 ? later.activity.retrying(left, retry.attempt, retry.of) : later.activity.retryingNow(retry.attempt, retry.of);
  return retry.reason ? `${words}: ${visible(said(text.modelSwitch.because(retry.reason)))}` : words;
}

function sayDoing({ rows }: OpenConversation, turn: Turn): { what: string; since: number | null } {
  const last = rows.at(-1);
  const tool = last?.kind === "activity" ? last.tool : null;
  if (tool && (tool.status === "running" || tool.status === "called")) {
    const line = sayTool(tool);
    return { what: `${text.tool.verbs[line.kind][1]} ${line.object}`.trim(), since: tool.started_at };
  }
  if (isCompacting(turn)) return { what: later.activity.compacting, since: null };
  if (turn.detail) return { what: sentence(visible(turn.detail)), since: null };
  const newest = rows.at(-2);
  if (newest?.kind === "text" && newest.block.status === "streaming") return { what: later.activity.writing, since: null };
  switch (turn.activity) {
    case "model_loading":
      return { what: later.activity.model_loading, since: null };
    case "thinking":
      return { what: later.activity.thinking, since: null };
    case "calling_tool":
      return { what: later.activity.calling, since: null };
    case "working":
    case "idle":
      return { what: newest?.kind === "thinking" ? later.activity.thinking : later.activity.working, since: null };
  }
}
