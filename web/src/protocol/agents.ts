/**
 * Agents, projects, missions and file trees as the server tells of them. Read by screens that are loaded later and by their
 * calls in transport/api.later.ts; holds no behaviour.
 */

import type { AgentEntry } from "./wire";

export type AgentSource = "built-in" | "data" | "project";

/** An agent in the list. */
export interface Listed extends AgentEntry {
  source: AgentSource;
  editable: boolean;
  trusted: boolean;
  /** Of its file; null when it has none. */
  hash: string | null;
  problem: string | null;
}

export interface AgentList {
  items: Listed[];
  /** What a person chose last, if it can be used. */
  last_used?: string | null;
}

/** Of an environment or headers: whether each is set. */
export type SecretsShown = Readonly<Record<string, boolean>>;

export interface ServerShown {
  name: string;
  command: string[];
  environment: SecretsShown;
  url: string | null;
  headers: SecretsShown;
  trusted: boolean;
}

export interface Rule {
  tool: string;
  decision: string;
  match?: string | null;
}

/** The whole of an agent. */
export interface AgentShown extends Listed {
  command: string[];
  environment: SecretsShown;
  fallbacks: string[];
  system_prompt: string;
  tools: string[];
  allowed_tools: string[];
  mcp_servers: ServerShown[];
  policy: Rule[];
  mode: string | null;
  spend_limit_usd: number | null;
  knowledge: boolean;
  idle_prompt: string | null;
  idle_interval_s: number | null;
  strict_inbox: boolean;
  params: Record<string, unknown>;
  /** The fields that its own file sets. */
  given: string[];
}

export interface ProjectEntry {
  project: string;
  name: string;
  exists: boolean;
  /** Where a conversation without a folder belongs. */
  home: boolean;
  conversations: number;
  unfinished: number;
  waiting: number;
  updated_at: number | null;
  /** The text of its active mission. */
  mission: string | null;
}

export interface RestOfAgent {
  agent: string;
  idle_prompt?: string | null;
  idle_interval_s?: number | null;
}

export type Standing = "resting" | "busy" | "waiting" | "no_prompt" | "unknown_agent" | "deleted" | "limit" | "budget";

export interface MissionAgent {
  agent: string;
  /** What holds for it now, whoever said it. */
  idle_prompt: string | null;
  idle_interval_s: number;
  conversation: string | null;
  triggered: number;
  next_due_at: number | null;
  status: Standing;
  /** What the mission itself says of it. */
  own: RestOfAgent;
}

export interface MissionView {
  active: boolean;
  project: string;
  stream: string;
  mission: string | null;
  text: string;
  created_at: number | null;
  agents: MissionAgent[];
  budget_usd: number | null;
  spent_usd: number;
  triggered: number;
  limit: number;
  /** `active`, or why nobody is woken any more. */
  status: "active" | "limit" | "budget" | null;
}

export interface PastMission {
  mission: string;
  text: string;
  active: boolean;
  created_at: number;
  ended_at: number | null;
  agents: RestOfAgent[];
  budget_usd: number | null;
  triggered: number;
  conversations: Record<string, string>;
}

export interface MissionWish {
  text: string;
  agents: RestOfAgent[];
  budget_usd: number | null;
}

/** What a folder says of an agent's resting; null where it says nothing. */
export interface RestOverride {
  project: string;
  agent: string;
  idle_prompt: string | null;
  idle_interval_s: number | null;
}

export interface TreeEntry {
  name: string;
  path: string;
  kind: "folder" | "file" | "link" | "other";
  size_bytes?: number | null;
  /** What a link says, and where it leads. */
  target?: string | null;
  leads?: "file" | "folder" | "outside" | "nowhere" | null;
  /** Of a folder, when more than one level was asked for. */
  entries?: TreeEntry[] | null;
}

export interface FileTree {
  project: string;
  path: string;
  entries: TreeEntry[];
  /** There is more than one answer holds. */
  truncated: boolean;
}
