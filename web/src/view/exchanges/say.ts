/** What passed between two agents, in words. Pure. */

import type { Exchange, Message, QueueItem, ToolBlock } from "../../protocol/events.gen";
import { work } from "../../text.work";
import { argument } from "../tools/say";

/** What the call's result says of the other side; all of it may be missing. */
export interface Outcome {
  response: string | null;
  durationMs: number | null;
  toolCallCount: number | null;
}

const NOTHING: Outcome = { response: null, durationMs: null, toolCallCount: null };

/** The result is JSON in the words of the contract, or whatever an older server wrote. */
export function outcomeOf({ output }: ToolBlock): Outcome {
  let known: unknown;
  try {
    known = JSON.parse(output);
  } catch {
    return NOTHING;
  }
  if (known === null || typeof known !== "object") return NOTHING;
  const { durationMs, toolCallCount } = known as Record<string, unknown>;
  return { response: argument(known, "response"), durationMs: asNumber(durationMs), toolCallCount: asNumber(toolCallCount) };
}

function asNumber(value: unknown): number | null {
  return typeof value === "number" ? value : null;
}

export function contentOf({ input }: ToolBlock): string {
  return argument(input, "content", "message", "text") ?? "";
}

/** A message that somebody waits for is answered; one that nobody waits for is worked on. */
export function sayStatus({ status, mode }: Exchange): string {
  const { states } = work.exchange;
  return status === "started" && mode === "async" ? states.atWork : states[status];
}

/** Why there is no answer here, when there is none. */
export function sayNone({ status, callback }: Exchange): string {
  const { none } = work.exchange;
  switch (status) {
    case "timeout":
      return none.timeout;
    case "cancelled":
      return none.cancelled;
    case "complete":
      return none.silent;
    case "failed":
      return "";
    case "sent":
    case "started":
    case "queued":
      return callback ? none.later : none.waiting;
  }
}

/** An answer without the words that tell the agent whose it is. */
export function answerIn(words: string): string {
  return words.replace(/^[^\n]{0,200} answered:\n\n/, "");
}

/** The message that brings the answer of an exchange. */
export function callbackOf(messages: readonly Message[], exchange: string): Message | undefined {
  return messages.findLast((message) => message.exchange === exchange && message.event_kind === "agent_callback");
}

/** The message whose call began an exchange. */
export function callOf(messages: readonly Message[], exchange: string): Message | undefined {
  return messages.findLast(({ blocks }) => blocks.some((block) => block.type === "tool" && block.call === exchange));
}

/** Who put a message into the queue, when it was no person; null: a person. */
export function sayQueued({ trigger, origin }: QueueItem, name: (agent: string) => string): string | null {
  const agent = origin?.agent;
  if (trigger === "idle") return work.exchange.idle;
  if (trigger === "callback") return agent ? work.exchange.answerOf(name(agent)) : work.exchange.answer;
  return agent ? work.exchange.messageOf(name(agent)) : null;
}
