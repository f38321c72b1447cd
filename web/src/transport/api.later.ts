/**
 * The REST calls of screens that are loaded later: each one function, beside those of api.ts, with the same errors.
 *
 * Called by those screens through `laterApi`. Must never retry: whoever calls decides.
 */

import type { ReviewFile } from "../model/settingsreview";
import type { AgentList, AgentShown, FileTree, Listed, MissionView, MissionWish, PastMission, ProjectEntry, RestOverride } from "../protocol/agents";
import type { Listing, Scope } from "../protocol/events.gen";
import type { WaitingRequest } from "../protocol/wire";
import { ApiError, asApiError, asWireError, HttpApi, parsed } from "./api";
import { signedFetch } from "./pagekey";

/** A program or a service that can answer. */
export interface BackendEntry {
  name: string;
  title: string;
  ready: boolean;
  installed: boolean;
  version: string | null;
  summary: string;
  fix: string | null;
  /** Null: it needs none, or is not installed. */
  login: "ok" | "missing" | "unknown" | null;
  capabilities: Record<string, boolean> | null;
  /** The ids of the agents that run on it. */
  agents: string[];
  processes: number;
  /** Of the last turn that failed since the server started; later ones may have worked. */
  last_error: { message: string; ts: number } | null;
}

/** What came of a test turn. */
export interface Trial {
  ok: boolean;
  text: string;
  duration_ms: number;
  error: { code: string; message: string } | null;
}

export interface ProcessEntry {
  kind: "program" | "background";
  /** Null: a program that serves all conversations of its backend. */
  conversation: string | null;
  title: string;
  agent: string | null;
  backend: string | null;
  pid: number | null;
  command: string;
  started_at: number | null;
  busy: boolean;
  idle_s: number;
}

/** What another program has left for an import. */
export interface FoundHistory {
  program: string;
  count: number;
  newest: number;
  size_bytes: number;
  /** There are more than were counted. */
  more?: boolean;
}

export interface TakenOver {
  conversation: string;
  outcome: string;
  title?: string;
  added?: number;
  note?: string | null;
}

/** One line of an import under way. */
export interface Advance {
  done: number;
  of: number;
  path?: string | null;
  taken?: TakenOver | null;
  problem?: string | null;
  skipped_lines?: number;
}

/** More than one conversation sets going; what is beyond is still in its own transcript. */
const DESCENDANTS = 200;

/** An engine takes half a minute for a sentence at most. */
const SPEECH_TIMEOUT_MS = 40_000;

/** A model may have to be loaded, and a program to be started, before the one short answer. */
const TRIAL_TIMEOUT_MS = 180_000;

/** A yes that outlives its conversation. `match` null: every call of the tool. */
export interface StandingGrant {
  id: string;
  tool: string;
  match: string | null;
  scope?: Scope;
  agent: string | null;
  project: string | null;
  /** Why it counts no more. */
  problem?: string | null;
}

/** What of a program's settings a folder has. `hash` null: too much to be trusted. */
export interface ProgramSettings {
  program: string;
  name: string;
  paths: string[];
  hash: string | null;
  trusted: boolean;
  /** What they would switch on, counted. */
  summary: string;
}

export interface ProgramReview {
  settings: ProgramSettings;
  files: ReviewFile[];
}

/** `holds` false: the settings have changed since they were trusted. */
export interface TrustedFolder {
  project: string;
  program: string;
  name: string;
  holds: boolean;
}

export class LaterApi extends HttpApi {
  backends(): Promise<BackendEntry[]> {
    return this.items("/api/backends");
  }

  tryAgent(agent: string): Promise<Trial> {
    return this.call("POST", `/api/agents/${encodeURIComponent(agent)}/test`, { timeoutMs: TRIAL_TIMEOUT_MS });
  }

  processes(): Promise<ProcessEntry[]> {
    return this.items("/api/processes");
  }

  endProcess(pid: number): Promise<void> {
    return this.call("DELETE", `/api/processes/${pid}`);
  }

  /** A one-time code that signs another browser in. */
  newCode(role: string): Promise<{ code: string; expires_in_s: number }> {
    return this.call("POST", "/api/session/code", { query: { role } });
  }

  /** A conversation and all that began from it. */
  descendants(root: string): Promise<Listing[]> {
    return this.items("/api/conversations", { query: { root, limit: DESCENDANTS } });
  }

  /** Requests that are over, the latest first. A server that does not keep them has none. */
  async recentRequests(most: number): Promise<WaitingRequest[]> {
    const { recent } = await this.call<{ recent?: WaitingRequest[] }>("GET", "/api/requests", { query: { recent: most } });
    return recent ?? [];
  }

  // -- agents

  /** With a folder: also those that it holds, trusted or not. */
  agentsIn(project?: string): Promise<AgentList> {
    return this.call("GET", "/api/agents", { query: { project } });
  }

  /** Those that a folder itself brings and that a person has trusted. */
  async agentsOf(project: string): Promise<Listed[]> {
    const { items } = await this.agentsIn(project);
    return items.filter(({ source, trusted, problem }) => source === "project" && trusted && problem === null);
  }

  agent(id: string, project?: string): Promise<AgentShown> {
    return this.call("GET", agentPath(id), { query: { project } });
  }

  createAgent(fields: Record<string, unknown>): Promise<AgentShown> {
    return this.call("POST", "/api/agents", { body: fields });
  }

  /** Only what is given changes; null clears. */
  updateAgent(id: string, patch: Record<string, unknown>): Promise<AgentShown> {
    return this.call("PATCH", agentPath(id), { body: patch });
  }

  deleteAgent(id: string): Promise<void> {
    return this.call("DELETE", agentPath(id));
  }

  duplicateAgent(id: string, project?: string): Promise<AgentShown> {
    return this.call("POST", `${agentPath(id)}/duplicate`, { query: { project }, body: {} });
  }

  /** `hash` says which bytes are meant; null takes the trust back. */
  trustAgent(project: string, agent: string, hash: string | null): Promise<Listed> {
    return this.call("POST", "/api/agents/trust", { body: { project, agent, hash } });
  }

  // -- what is always allowed

  grants(): Promise<{ items: StandingGrant[]; problem: string | null }> {
    return this.call("GET", "/api/grants");
  }

  removeGrant(id: string): Promise<void> {
    return this.call("DELETE", `/api/grants/${encodeURIComponent(id)}`);
  }

  /** A sentence as sound; null when the server has no voice. */
  async speech(text: string, signal: AbortSignal): Promise<ArrayBuffer | null> {
    const { fetch: fetcher } = this;
    const answer = await fetcher("/api/speech", {
      method: "POST",
      headers: { "palaver-client": this.client, "content-type": "application/json" },
      signal: AbortSignal.any([signal, AbortSignal.timeout(SPEECH_TIMEOUT_MS)]),
      body: JSON.stringify({ text }),
    });
    if (answer.status === 404) return null;
    if (!answer.ok) throw new ApiError(answer.status, asWireError(answer.status, parsed(await answer.text())));
    return answer.arrayBuffer();
  }

  // -- projects

  projects(): Promise<ProjectEntry[]> {
    return this.items("/api/projects");
  }

  mission(project: string): Promise<MissionView> {
    return this.call("GET", "/api/projects/mission", { query: { project } });
  }

  missions(project: string): Promise<PastMission[]> {
    return this.items("/api/projects/missions", { query: { project } });
  }

  setMission(project: string, wish: MissionWish): Promise<MissionView> {
    return this.call("PUT", "/api/projects/mission", { query: { project }, body: wish });
  }

  clearMission(project: string): Promise<MissionView> {
    return this.call("DELETE", "/api/projects/mission", { query: { project } });
  }

  override(project: string, agent: string): Promise<RestOverride> {
    return this.call("GET", "/api/projects/override", { query: { project, agent } });
  }

  setOverride(project: string, agent: string, patch: Record<string, unknown>): Promise<RestOverride> {
    return this.call("PUT", "/api/projects/override", { query: { project, agent }, body: patch });
  }

  tree(project: string, path = ".", depth?: number): Promise<FileTree> {
    return this.call("GET", "/api/projects/tree", { query: { project, path, depth } });
  }

  // -- settings that a folder has for agent programs

  /** Of the program that runs an agent; none when no program does. */
  programSettings(project: string, agent: string): Promise<ProgramSettings[]> {
    return this.items("/api/projects/trust", { query: { project, agent } });
  }

  reviewSettings(project: string, program: string): Promise<ProgramReview> {
    return this.call("GET", "/api/projects/trust/review", { query: { project, program } });
  }

  /** `hash` says which files are meant. */
  trustSettings(project: string, program: string, hash: string): Promise<ProgramSettings> {
    return this.call("POST", "/api/projects/trust", { query: { project }, body: { program, hash } });
  }

  revokeSettings(project: string, program: string): Promise<ProgramSettings> {
    return this.call("DELETE", "/api/projects/trust", { query: { project, program } });
  }

  trustedFolders(): Promise<TrustedFolder[]> {
    return this.items("/api/projects/trusted");
  }

  // -- histories

  foundHistories(): Promise<FoundHistory[]> {
    return this.items("/api/import/found");
  }

  /** Tells of each file as it is read. Unbounded in time: it ends with the last file, or when `signal` says so. */
  async importHistory(program: string, options: { dryRun: boolean; signal: AbortSignal }, tell: (advance: Advance) => void): Promise<void> {
    const query = options.dryRun ? "?dry_run=true" : "";
    // A browser's fetch wants no `this`.
    const { fetch: fetcher } = this;
    try {
      const response = await fetcher(`/api/import/${encodeURIComponent(program)}${query}`, {
        method: "POST",
        headers: { "palaver-client": this.client },
        cache: "no-store",
        signal: options.signal,
      });
      if (!response.ok) throw new ApiError(response.status, asWireError(response.status, parsed(await response.text())));
      if (response.body === null) return;
      for await (const line of linesOf(response.body)) tell(JSON.parse(line) as Advance);
    } catch (cause) {
      throw asApiError(cause);
    }
  }
}

function agentPath(id: string): string {
  return `/api/agents/${encodeURIComponent(id)}`;
}

/** The lines of a stream as they become whole; a last one without an end counts too. */
export async function* linesOf(stream: ReadableStream<Uint8Array>): AsyncGenerator<string> {
  const reader = stream.getReader();
  const decoder = new TextDecoder();
  let rest = "";
  try {
    for (;;) {
      const { done, value } = await reader.read();
      rest += done ? decoder.decode() : decoder.decode(value, { stream: true });
      const lines = rest.split("\n");
      rest = done ? "" : (lines.pop() ?? "");
      for (const line of lines) if (line.trim() !== "") yield line;
      if (done) return;
    }
  } finally {
    await reader.cancel().catch(() => undefined);
  }
}

/** For the page: `client` is the name it goes by. */
export function laterApi(client: string): LaterApi {
  return new LaterApi(signedFetch, { client });
}
