/** What an agent is called. The list of agents is loaded once; until it is there, an id is as good a name as any. */

import { visible } from "./controls/visible";
import { usePick } from "./store";

export function useAgentName(id: string): string {
  return usePick(({ agents }) => agents.items.find((agent) => agent.id === id)?.name) ?? visible(id);
}
