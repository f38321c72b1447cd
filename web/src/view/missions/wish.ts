/** A mission between what its form holds and what the server takes. Pure. */

import type { MissionView, MissionWish, RestOfAgent, RestOverride } from "../../protocol/agents";

export interface RestForm {
  idle_prompt: string;
  idle_interval_s: string;
}

export interface MissionForm {
  text: string;
  budget_usd: string;
  /** By agent, those that work on it. */
  agents: Record<string, RestForm>;
}

export type Wrong = "say" | "number" | "whole";
/** By field: `text`, `budget_usd`, or the agent's id and the field, as in `reviewer.idle_prompt`. */
export type WrongFields = Record<string, Wrong>;

export const NO_REST: RestForm = { idle_prompt: "", idle_interval_s: "" };

export function formOf(mission: MissionView | null): MissionForm {
  return {
    text: mission?.text ?? "",
    budget_usd: mission?.budget_usd == null ? "" : String(mission.budget_usd),
    agents: Object.fromEntries((mission?.agents ?? []).map(({ agent, own }) => [agent, restOf(own)])),
  };
}

export function restOf(said: Omit<RestOfAgent, "agent"> | RestOverride | undefined): RestForm {
  return { idle_prompt: said?.idle_prompt ?? "", idle_interval_s: said?.idle_interval_s == null ? "" : String(said.idle_interval_s) };
}

export function wishOf(form: MissionForm): { wish: MissionWish; wrong: WrongFields } {
  const wrong: WrongFields = {};
  if (form.text.trim() === "") wrong["text"] = "say";
  const agents = Object.entries(form.agents).map(([agent, rest]): RestOfAgent => {
    const seconds = numberOf(rest.idle_interval_s);
    if (Number.isNaN(seconds)) wrong[`${agent}.idle_interval_s`] = "number";
    else if (seconds !== null && !Number.isInteger(seconds)) wrong[`${agent}.idle_interval_s`] = "whole";
    return { agent, idle_prompt: rest.idle_prompt.trim() || null, idle_interval_s: seconds };
  });
  const budget = numberOf(form.budget_usd);
  if (Number.isNaN(budget)) wrong["budget_usd"] = "number";
  return { wish: { text: form.text.trim(), agents, budget_usd: budget }, wrong };
}

/** Only what differs from what the folder says now; null takes it back. */
export function overrideOf(form: RestForm, before: RestOverride): { patch: Record<string, unknown>; wrong: Wrong | null } {
  const patch: Record<string, unknown> = {};
  const prompt = form.idle_prompt.trim() || null;
  if (prompt !== before.idle_prompt) patch["idle_prompt"] = prompt;
  const seconds = numberOf(form.idle_interval_s);
  if (Number.isNaN(seconds)) return { patch, wrong: "number" };
  if (seconds !== null && !Number.isInteger(seconds)) return { patch, wrong: "whole" };
  if (seconds !== before.idle_interval_s) patch["idle_interval_s"] = seconds;
  return { patch, wrong: null };
}

/** null: nothing was written; NaN: no number was. */
function numberOf(words: string): number | null {
  const plain = words.trim().replace(",", ".");
  if (plain === "") return null;
  return Number.isFinite(Number(plain)) ? Number(plain) : Number.NaN;
}

/** The field of a form that a refusal is about: `agents[1].idle_prompt` is that of the second agent. */
export function fieldOf(message: string, form: MissionForm): string | null {
  const named = /^`([^`]+)`/.exec(message)?.[1];
  if (named === "text" || named === "budget_usd") return named;
  const [, place, field] = /^agents\[(\d+)\]\.(idle_prompt|idle_interval_s)$/.exec(named ?? "") ?? [];
  const agent = place === undefined ? undefined : Object.keys(form.agents)[Number(place)];
  return agent === undefined ? null : `${agent}.${field ?? ""}`;
}

/** Without what only this device says: where the page says it, the server says why. */
export function plainly(message: string): string {
  const plain = message.replace(/^`[^`]+`: /, "");
  return plain.charAt(0).toUpperCase() + plain.slice(1);
}
