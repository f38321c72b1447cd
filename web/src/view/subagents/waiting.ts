/** What waits for a person in a conversation and below it. */

import { waitingIn } from "../../model/attention";
import { usePick } from "../store";

export function useWaiting(conversation: string): number {
  return usePick(({ requests, list }) => waitingIn(requests.items, conversation, list.byId));
}
