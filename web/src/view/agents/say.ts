/** What is said of an agent in the list, and in which order. Pure. */

import type { AgentSource, Listed } from "../../protocol/agents";

export type AgentState = "ready" | "unready" | "broken" | "untrusted";

/** The backend of an agent whose file cannot be read. */
export const UNREADABLE = "none";

export const TONES = { ready: "good", unready: "wait", broken: "bad", untrusted: "wait" } as const;

export function stateOf(agent: Listed, all: readonly Listed[]): AgentState {
  if (isUntrusted(agent, all)) return "untrusted";
  if (agent.problem !== null) return "broken";
  return agent.ready ? "ready" : "unready";
}

/** A project's file that could be trusted: it can be read, and no other agent goes by its id. */
export function isUntrusted(agent: Listed, all: readonly Listed[]): boolean {
  return agent.source === "project" && !agent.trusted && agent.backend !== UNREADABLE && !all.some((other) => other.id === agent.id && other.source !== "project");
}

/** Yours first: those are what one comes to change. */
export function bySource(agents: readonly Listed[]): Record<AgentSource, Listed[]> {
  const of = (source: AgentSource): Listed[] => agents.filter((agent) => agent.source === source);
  return { data: of("data"), "built-in": of("built-in"), project: of("project") };
}

/** Enough of a hash to tell two files apart by eye. */
export function shortHash(hash: string): string {
  return hash.slice(0, 12);
}
