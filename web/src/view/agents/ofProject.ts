/** The agents that a folder itself brings and that a person has trusted. Asked for when a conversation there is opened. */

import type { AgentEntry } from "../../protocol/wire";
import { laterApi } from "../../transport/api.later";

export async function trustedIn(client: string, project: string): Promise<AgentEntry[]> {
  const { items } = await laterApi(client).agentsIn(project);
  return items.filter(({ source, trusted, problem }) => source === "project" && trusted && problem === null);
}
