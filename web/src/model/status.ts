/** Reading the folded view: the one place that derives a conversation's status. Says what `core/state.py` says. */

import type { Message, Request, State, Status, ToolBlock, Turn } from "../protocol/events.gen";
import { isOpenTool } from "./blocks";

/** The grant of a call that a client itself executes. */
const EDITOR_GRANT = "ide";

export function statusOf(state: State): Status {
  // What an agent elsewhere waits for holds up nothing here.
  const open = state.requests.filter((request) => request.status === "open" && !isFromElsewhere(request));
  if (state.turn === null) {
    if (open.length > 0) return "waiting_user_input";
    const outcome = state.last_turn?.outcome;
    return outcome === "task" ? "completed" : outcome === "failed" ? "error" : "idle";
  }
  if (open.some((request) => request.kind === "approval")) return "paused";
  if (open.length > 0) return "waiting_user_input";
  const running = toolsAtWork(state, state.turn).filter((tool) => tool.status === "running");
  if (running.some((tool) => tool.grant === EDITOR_GRANT)) return "waiting_ide";
  return running.length > 0 ? "executing_tools" : "generating";
}

/** Asked for a call of an agent that does not run here: no turn of ours waits for the answer. */
function isFromElsewhere(request: Request): boolean {
  return request.turn === null && request.call === null && request.kind === "approval";
}

/** The calls a turn works on. One that goes on from a request may run calls of the turn before it, wherever they stand. */
export function toolsAtWork(state: State, turn: Turn): ToolBlock[] {
  if (turn.trigger.kind !== "request") return toolsOf(messagesOfTurn(state, turn.id));
  return toolsOf(state.messages.filter((message) => message.role === "assistant")).filter(isOpenTool);
}

function toolsOf(messages: readonly Message[]): ToolBlock[] {
  return messages.flatMap((message) => message.blocks.filter((block) => block.type === "tool"));
}

/**
 * A turn's messages, in order. They stand at the end, so the walk is short whatever the history. Only what a person or
 * an agent said ends the walk: an event or a summary may stand between them.
 */
export function messagesOfTurn(state: State, turn: string): Message[] {
  const found: Message[] = [];
  for (let place = state.messages.length - 1; place >= 0; place--) {
    const message = state.messages[place] as Message;
    if (message.turn === turn) found.push(message);
    else if (message.role === "user" || message.role === "assistant") break;
  }
  return found.reverse();
}
