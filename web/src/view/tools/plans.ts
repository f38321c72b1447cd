/** Which of an agent's calls drew the plan that holds now: it is shown open, and follows what becomes of the plan. */

import { kindOf } from "../../model/toolkind";
import type { Message } from "../../protocol/events.gen";
import { useConversationId } from "../conversation/scope";
import { usePicked } from "../store";

const newest = new WeakMap<readonly Message[], string | null>();

/** From the end, and once for each state: every plan in sight asks. */
function newestPlan(messages: readonly Message[]): string | null {
  const known = newest.get(messages);
  if (known !== undefined) return known;
  let call: string | null = null;
  for (let at = messages.length - 1; at >= 0 && call === null; at--) {
    const block = messages[at]?.blocks.findLast((one) => one.type === "tool" && kindOf(one.name) === "plan");
    if (block?.type === "tool") call = block.call;
  }
  newest.set(messages, call);
  return call;
}

/** Whether to show it open: while it waits for an answer, it is shown with the question. */
export function usePlanIsOpen(call: string, isPlan: boolean): boolean {
  const asked = usePicked(
    useConversationId(),
    ({ state }) => isPlan && state.requests.some((request) => request.kind === "plan" && request.status === "open"),
  );
  return useIsNewestPlan(call, isPlan) && asked !== true;
}

export function useIsNewestPlan(call: string, isPlan: boolean): boolean {
  return usePicked(useConversationId(), ({ state }) => isPlan && newestPlan(state.messages) === call) ?? false;
}
