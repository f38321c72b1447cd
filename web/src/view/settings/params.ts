/** The parameters a person may set, between what a form holds and what the server takes. Pure. */

export const NUMBERS = ["temperature", "max_tokens", "thinking_budget", "context_tokens_cap", "spend_limit_usd"] as const;
export const TEXTS = ["model", "reasoning_effort"] as const;

export type Field = (typeof NUMBERS)[number] | (typeof TEXTS)[number] | "knowledge";
export type Form = Record<(typeof NUMBERS)[number] | (typeof TEXTS)[number], string> & { knowledge: boolean };
export type Params = Readonly<Record<string, unknown>>;

export function formOf(params: Params): Form {
  const words = Object.fromEntries([...NUMBERS, ...TEXTS].map((name) => [name, wordsOf(params[name])])) as Omit<Form, "knowledge">;
  return { ...words, knowledge: params["knowledge"] !== false };
}

function wordsOf(value: unknown): string {
  return typeof value === "string" || typeof value === "number" ? String(value) : "";
}

export interface Changes {
  /** Only what differs; null clears. */
  readonly patch: Record<string, unknown>;
  /** Fields that hold no number. */
  readonly wrong: readonly Field[];
}

export function changesOf(form: Form, params: Params): Changes {
  const before = formOf(params);
  const patch: Record<string, unknown> = {};
  const wrong: Field[] = [];
  for (const name of NUMBERS) {
    const words = form[name].trim().replace(",", ".");
    if (words === before[name]) continue;
    if (words === "") patch[name] = null;
    else if (Number.isFinite(Number(words))) patch[name] = Number(words);
    else wrong.push(name);
  }
  for (const name of TEXTS) {
    const words = form[name].trim();
    if (words !== before[name]) patch[name] = words === "" ? null : words;
  }
  // On is what an agent does unless told otherwise.
  if (form.knowledge !== before.knowledge) patch["knowledge"] = form.knowledge ? null : false;
  return { patch, wrong };
}

/** The field a refusal is about: the server names it in the details, or quotes it. */
export function fieldOf(error: { message: string; details?: object | null }): Field | null {
  const named = (error.details as { param?: unknown } | null | undefined)?.param ?? /[`“](\w+)[`”]/.exec(error.message)?.[1];
  const known: readonly string[] = [...NUMBERS, ...TEXTS, "knowledge"];
  return typeof named === "string" && known.includes(named) ? (named as Field) : null;
}

/** Models to choose from: those that were used here, then those the agents name. */
export function modelsOf(used: readonly (string | null)[], agents: readonly { model: string | null }[]): string[] {
  const names = [...used, ...agents.map((agent) => agent.model)].filter((name) => name !== null && name !== "");
  return [...new Set(names as string[])];
}
