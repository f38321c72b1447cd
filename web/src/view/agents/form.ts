/**
 * An agent between what its form holds and what the server takes: only what differs is sent, and null clears. Pure.
 *
 * Secrets come as “set” and never with their value: one that was not touched is not sent, or as `true`, which means “as it is”.
 */

import type { AgentShown, Rule, SecretsShown, ServerShown } from "../../protocol/agents";
import { lineOf, namesOf, wordsOf } from "./words";

/** The backend of an agent that names none. */
export const BEST = "best";
export const PARAMS = ["temperature", "max_tokens", "thinking_budget", "context_tokens_cap"] as const;
export const DECISIONS = ["allow", "ask", "deny_continue", "deny_abort"] as const;

export interface SecretForm {
  key: number;
  name: string;
  /** The server has a value for it. */
  isSet: boolean;
  /** What is to take its place; null: as it is. */
  value: string | null;
}

export interface ServerForm {
  key: number;
  name: string;
  /** The server knows it under this name: its secrets hang on that. */
  known: boolean;
  kind: "program" | "address";
  command: string;
  url: string;
  /** Environment of a program, headers of an address. */
  secrets: SecretForm[];
  trusted: boolean;
}

export interface RuleForm {
  key: number;
  tool: string;
  match: string;
  decision: string;
}

export interface AgentForm {
  id: string;
  name: string;
  description: string;
  system_prompt: string;
  backend: string;
  model: string;
  fallbacks: string;
  command: string;
  environment: SecretForm[];
  tools: string;
  allowed_tools: string;
  mcp_servers: ServerForm[];
  policy: RuleForm[];
  mode: string;
  spend_limit_usd: string;
  params: Record<string, string>;
  idle_prompt: string;
  idle_interval_s: string;
  strict_inbox: boolean;
  knowledge: boolean;
}

export type Field = keyof AgentForm;
export const FIELDS = [
  "id", "name", "description", "system_prompt", "backend", "model", "fallbacks", "command", "environment", "tools", "allowed_tools",
  "mcp_servers", "policy", "mode", "spend_limit_usd", "params", "idle_prompt", "idle_interval_s", "strict_inbox", "knowledge",
] as const satisfies readonly Field[];

export type Wrong = "number" | "whole" | "quote" | "name" | "secret" | "server" | "twice" | "rule";

export interface Changes {
  patch: Record<string, unknown>;
  /** What cannot be sent, by field. */
  wrong: Partial<Record<Field, Wrong>>;
}

let made = 0;

/** Tells the rows of a list apart while they are edited. */
export function newKey(): number {
  return ++made;
}

export function formOf(agent: AgentShown | null): AgentForm {
  // A file that names no backend or model takes what is best here; what that is now is no wish of it.
  const named = (field: string, value: string | null): string => (agent?.given.includes(field) ? (value ?? "") : "");
  return {
    id: agent?.id ?? "",
    name: agent?.name ?? "",
    description: agent?.description ?? "",
    system_prompt: agent?.system_prompt ?? "",
    backend: named("backend", agent?.backend ?? null) || BEST,
    model: named("model", agent?.model ?? null),
    fallbacks: agent?.fallbacks.join(", ") ?? "",
    command: lineOf(agent?.command ?? []),
    environment: secretsOf(agent?.environment ?? {}),
    tools: agent?.tools.join(", ") ?? "",
    allowed_tools: agent?.allowed_tools.join(", ") ?? "",
    mcp_servers: agent?.mcp_servers.map(serverOf) ?? [],
    policy: agent?.policy.map(({ tool, match, decision }: Rule) => ({ key: newKey(), tool, match: match ?? "", decision })) ?? [],
    mode: agent?.mode ?? "",
    spend_limit_usd: agent?.spend_limit_usd == null ? "" : String(agent.spend_limit_usd),
    params: Object.fromEntries([...PARAMS, "reasoning_effort"].map((name) => [name, wordOf(agent?.params[name])])),
    idle_prompt: agent?.idle_prompt ?? "",
    idle_interval_s: agent?.idle_interval_s == null ? "" : String(agent.idle_interval_s),
    strict_inbox: agent?.strict_inbox ?? false,
    knowledge: agent?.knowledge ?? true,
  };
}

function wordOf(value: unknown): string {
  return typeof value === "string" || typeof value === "number" ? String(value) : "";
}

function secretsOf(shown: SecretsShown): SecretForm[] {
  return Object.keys(shown).map((name) => ({ key: newKey(), name, isSet: true, value: null }));
}

function serverOf(shown: ServerShown): ServerForm {
  const kind = shown.url === null ? "program" : "address";
  return {
    key: newKey(),
    name: shown.name,
    known: true,
    kind,
    command: lineOf(shown.command),
    url: shown.url ?? "",
    secrets: secretsOf(kind === "program" ? shown.environment : shown.headers),
    trusted: shown.trusted,
  };
}

/** `before` null: a new agent, of which everything is sent that is not as it would be anyway. */
export function changesOf(form: AgentForm, before: AgentShown | null): Changes {
  const old = formOf(before);
  const patch: Record<string, unknown> = {};
  const wrong: Changes["wrong"] = {};
  const differs = (field: Field): boolean => JSON.stringify(bare(form[field])) !== JSON.stringify(bare(old[field]));
  // What a built-in agent says is taken back by saying the empty thing; what a file says, by taking it out.
  const cleared = (field: string, empty: unknown): unknown => (before?.source === "built-in" && !before.given.includes(field) ? empty : null);

  if (before === null && form.id.trim() !== "") patch["id"] = form.id.trim();
  if (form.name.trim() === "") wrong.name = "name";
  else if (form.name.trim() !== old.name) patch["name"] = form.name.trim();
  for (const field of ["description", "idle_prompt", "model", "mode"] as const) {
    const value = form[field].trim();
    if (value !== old[field].trim()) patch[field] = value === "" ? cleared(field, field === "description" ? "" : null) : value;
  }
  if (form.system_prompt.trim() !== old.system_prompt.trim()) patch["system_prompt"] = form.system_prompt.trim() || null;
  if (form.backend !== old.backend) patch["backend"] = form.backend === BEST ? null : form.backend;
  for (const field of ["fallbacks", "tools", "allowed_tools"] as const) {
    const names = namesOf(form[field]);
    if (names.join() !== namesOf(old[field]).join()) patch[field] = names.length === 0 ? cleared(field, []) : names;
  }
  if (differs("command")) {
    const words = wordsOf(form.command);
    if (words === null) wrong.command = "quote";
    else patch["command"] = words.length === 0 ? cleared("command", []) : words;
  }
  takeNumber("spend_limit_usd", false);
  takeNumber("idle_interval_s", true);
  for (const field of ["strict_inbox", "knowledge"] as const) if (form[field] !== old[field]) patch[field] = form[field];
  takeEnvironment();
  takeParams();
  takeServers();
  takeRules();
  return { patch, wrong };

  function takeNumber(field: "spend_limit_usd" | "idle_interval_s", whole: boolean): void {
    const words = form[field].trim().replace(",", ".");
    if (words === old[field]) return;
    if (words === "") patch[field] = null;
    else if (!Number.isFinite(Number(words))) wrong[field] = "number";
    else if (whole && !Number.isInteger(Number(words))) wrong[field] = "whole";
    else patch[field] = Number(words);
  }

  function takeEnvironment(): void {
    const found = secretsPatch(form.environment);
    if (typeof found === "string") {
      wrong.environment = found;
      return;
    }
    const kept = new Set(form.environment.map(({ name }) => name.trim()));
    const gone = old.environment.filter(({ name }) => !kept.has(name)).map(({ name }) => [name, null]);
    const changed = { ...Object.fromEntries(gone), ...Object.fromEntries(Object.entries(found).filter(([, value]) => value !== true)) };
    if (Object.keys(changed).length > 0) patch["environment"] = changed;
  }

  function takeParams(): void {
    const changed: Record<string, unknown> = {};
    for (const [name, text] of Object.entries(form.params)) {
      const words = text.trim().replace(",", ".");
      if (words === (old.params[name] ?? "")) continue;
      if (words === "") changed[name] = null;
      else if (name === "reasoning_effort") changed[name] = words;
      else if (Number.isFinite(Number(words))) changed[name] = Number(words);
      else wrong.params = "number";
    }
    if (Object.keys(changed).length > 0) patch["params"] = changed;
  }

  function takeServers(): void {
    if (!differs("mcp_servers")) return;
    const changed: Record<string, unknown> = {};
    const names = form.mcp_servers.map(({ name }) => name.trim());
    for (const { name } of old.mcp_servers) if (!names.includes(name)) changed[name] = null;
    for (const server of form.mcp_servers) {
      const name = server.name.trim();
      if (names.filter((one) => one === name).length > 1) wrong.mcp_servers = "twice";
      const before = old.mcp_servers.find((known) => known.name === name);
      if (before && JSON.stringify(bare(before)) === JSON.stringify(bare(server))) continue;
      const secrets = secretsPatch(server.secrets);
      const words = wordsOf(server.command);
      const says = server.kind === "program" ? words?.length : server.url.trim();
      if (name === "" || !says) wrong.mcp_servers = words === null ? "quote" : "server";
      else if (typeof secrets === "string") wrong.mcp_servers = secrets;
      else {
        const own = server.kind === "program" ? { command: words, environment: secrets } : { url: server.url.trim(), headers: secrets };
        changed[name] = { ...own, trusted: server.trusted };
      }
    }
    if (Object.keys(changed).length > 0) patch["mcp_servers"] = changed;
  }

  function takeRules(): void {
    if (!differs("policy")) return;
    if (form.policy.some(({ tool }) => tool.trim() === "")) {
      wrong.policy = "rule";
      return;
    }
    const rules = form.policy.map(({ tool, match, decision }) => ({ tool: tool.trim(), decision, ...(match.trim() ? { match: match.trim() } : {}) }));
    patch["policy"] = rules.length === 0 ? cleared("policy", []) : rules;
  }
}

/** By name: `true` for those that stay as they are. A word: why they cannot be sent. */
function secretsPatch(secrets: readonly SecretForm[]): Record<string, string | true> | Wrong {
  const names = secrets.map(({ name }) => name.trim());
  if (names.includes("")) return "secret";
  if (new Set(names).size < names.length) return "twice";
  if (secrets.some(({ isSet, value }) => !isSet && !value)) return "secret";
  return Object.fromEntries(secrets.map(({ name, value }) => [name.trim(), value ? value : true]));
}

/** Without what only tells rows apart. */
function bare(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(bare);
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(
    Object.entries(value)
      .filter(([name]) => name !== "key")
      .map(([name, part]) => [name, bare(part)]),
  );
}

export function hasChanges({ patch, wrong }: Changes, before: AgentShown | null): boolean {
  // A name that is still to be typed is no change of a new agent.
  const { name, ...others } = wrong;
  return Object.keys(patch).length > 0 || Object.keys(others).length > 0 || (name !== undefined && before !== null);
}

/** The field a refusal is about: the server names it in the details, or quotes it first. */
export function fieldOf(error: { message: string; details?: object | null }): Field | null {
  const details = error.details as { field?: unknown } | null | undefined;
  const named = details?.field ?? /^`(\w+)`/.exec(error.message)?.[1];
  return FIELDS.find((field) => field === named) ?? null;
}
