/**
 * Parser of structured answers: a finished text block whose whole text is one JSON object with a known `type`, shown as a
 * widget instead of as text. The twin of `src/palaver/core/text/special_blocks.py`; `tests/golden/texts/special-blocks.json` holds both
 * to the same answers. Everything else, JSON or not, gives null and stays text. Pure.
 */

import type { Plan, PlanItem, Question, QuestionOption, TextBlock } from "../protocol/events.gen";
import { isObjectText } from "./objecttext";

export interface PlanSpecial {
  readonly type: "plan";
  readonly plan: Plan;
}

export interface TaskSpecial {
  readonly type: "finalize_task";
  readonly title: string;
  readonly summary: string;
  readonly sections: readonly { readonly title: string; readonly items: readonly string[] }[];
}

export interface ReportedFile {
  readonly path: string;
  readonly summary: string | null;
  readonly diff: string | null;
}

export interface ReportSpecial {
  readonly type: "change_report";
  readonly files: readonly ReportedFile[];
  readonly truncated_count: number;
}

export interface AskSpecial {
  readonly type: "ask_user";
  readonly questions: readonly Question[];
  readonly question_id: string | null;
}

export type Special = PlanSpecial | TaskSpecial | ReportSpecial | AskSpecial;

type Fields = Readonly<Record<string, unknown>>;

/** A known field holds something it cannot hold: the block is shown as text. */
class Malformed extends Error {}

const known = new Map<string, Special | null>();
const KEEP = 200;

/** The widget a finished text block stands for, or null when it is to be shown as text. The same object for the same text. */
export function parseSpecial(text: string): Special | null {
  if (!isObjectText(text)) return null;
  const found = known.get(text);
  if (found !== undefined) return found;
  const special = parse(text);
  if (known.size >= KEEP) known.clear();
  known.set(text, special);
  return special;
}

function parse(text: string): Special | null {
  try {
    const fields: Fields = JSON.parse(text);
    switch (fields["type"]) {
      case "plan":
        return readPlan(fields);
      case "finalize_task":
        return readTask(fields);
      case "change_report":
        return readReport(fields);
      case "ask_user":
        return readQuestions(fields);
      default:
        return null;
    }
  } catch (cause) {
    if (cause instanceof SyntaxError || cause instanceof Malformed) return null;
    throw cause;
  }
}

/** The message that answers an `ask_user` block, readable by itself: one line a question that was answered. */
export function answerText(questions: readonly Question[], answers: readonly (readonly string[])[]): string {
  const lines = questions.flatMap(({ question }, at) => {
    const chosen = answers[at] ?? [];
    return chosen.some((one) => one !== "") ? [{ question, answer: chosen.join(", ") }] : [];
  });
  if (questions.length === 1) return lines[0]?.answer ?? "";
  return lines.map(({ question, answer }) => `${question.trim().replace(/\s+/g, " ")} ${answer}`).join("\n");
}

/** A text for the ear: of a structured answer what it says, once it is finished, and never its JSON. */
export function spokenText({ text, status }: TextBlock): string {
  if (!/^\s*\{/.test(text)) return text;
  if (status === "streaming") return "";
  const special = parseSpecial(text);
  switch (special?.type) {
    case "plan":
      return special.plan.summary;
    case "finalize_task":
      return [special.title, special.summary].filter(Boolean).join(". ");
    case "change_report":
      return special.files.map(({ path, summary }) => summary ?? path).join(". ");
    case "ask_user":
      return special.questions.map(({ question }) => question).join(" ");
    default:
      return text;
  }
}

// -- reading

function readPlan(fields: Fields): PlanSpecial | null {
  // Some agents put the plan into a field of its own.
  const body = objectIn(fields, "plan") ?? fields;
  const items = listIn(body, "items").map(readItem);
  const summary = textIn(body, "summary") ?? "";
  if (items.length === 0 && summary.trim() === "") return null;
  return { type: "plan", plan: { summary, items, status: planStatus(textIn(body, "status")), text: null } };
}

function readItem(item: unknown): PlanItem {
  const fields = named(item, "title");
  return { title: required(fields, "title"), description: textIn(fields, "description"), status: itemStatus(textIn(fields, "status")) };
}

function itemStatus(word: string | null): PlanItem["status"] {
  switch (word) {
    case "done":
    case "complete":
    case "completed":
      return "done";
    case "in_progress":
    case "active":
    case "running":
      return "in_progress";
    case "skipped":
    case "cancelled":
    case "canceled":
      return "skipped";
    default:
      return "pending";
  }
}

function planStatus(word: string | null): Plan["status"] {
  return word === "approved" || word === "executing" || word === "completed" ? word : "planned";
}

function readTask(fields: Fields): TaskSpecial | null {
  const packet = fields["packet"];
  const body = isObject(packet) ? packet : fields;
  const title = textIn(body, "title") ?? "";
  const summary = typeof packet === "string" ? packet : textIn(body, "summary") || textIn(fields, "summary") || "";
  const sections = Object.entries(body)
    .filter(([name]) => !["type", "title", "summary", "packet"].includes(name))
    .map(([name, value]) => ({ title: headingOf(name), items: sentences(value) }))
    .filter(({ items }) => items.length > 0);
  if (title.trim() === "" && summary.trim() === "" && sections.length === 0) return null;
  return { type: "finalize_task", title, summary, sections };
}

/** The items of a section; nothing for a value that is neither a text nor a list of texts. */
function sentences(value: unknown): string[] {
  const texts: unknown[] = Array.isArray(value) ? value : [value];
  return texts.every((text) => typeof text === "string") ? texts.filter((text) => text.trim() !== "") : [];
}

function headingOf(name: string): string {
  const words = name.replaceAll("_", " ").trim();
  return words.slice(0, 1).toUpperCase() + words.slice(1);
}

function readReport(fields: Fields): ReportSpecial | null {
  const files = listIn(fields, "files").map(readFile);
  return files.length === 0 ? null : { type: "change_report", files, truncated_count: countIn(fields, "truncated_count") };
}

function readFile(file: unknown): ReportedFile {
  const fields = named(file, "path");
  return { path: required(fields, "path"), summary: textIn(fields, "summary"), diff: textIn(fields, "diff") };
}

function readQuestions(fields: Fields): AskSpecial | null {
  const listed = listIn(fields, "questions");
  const asked = listed.length === 0 && (fields["question"] ?? null) !== null ? [fields] : listed;
  const questions = asked.map(readQuestion);
  return questions.length === 0 ? null : { type: "ask_user", questions, question_id: textIn(fields, "question_id") };
}

function readQuestion(question: unknown): Question {
  const fields = named(question, "question");
  return {
    question: required(fields, "question"),
    header: textIn(fields, "header") ?? "",
    options: listIn(fields, "options").map(readOption),
    multi_select: flagIn(fields, "multi_select") || flagIn(fields, "multiSelect"),
  };
}

function readOption(option: unknown): QuestionOption {
  const fields = named(option, "label");
  return { label: required(fields, "label"), description: textIn(fields, "description"), preview: textIn(fields, "preview") };
}

// -- fields

function isObject(value: unknown): value is Fields {
  return value !== null && typeof value === "object" && !Array.isArray(value);
}

/** An entry of a list: an object, or a text that stands for an object with only that field. */
function named(value: unknown, name: string): Fields {
  if (typeof value === "string") return { [name]: value };
  if (!isObject(value)) throw new Malformed();
  return value;
}

function objectIn(fields: Fields, name: string): Fields | null {
  const value = fields[name] ?? null;
  if (value !== null && !isObject(value)) throw new Malformed();
  return value;
}

function textIn(fields: Fields, name: string): string | null {
  const value = fields[name] ?? null;
  if (value !== null && typeof value !== "string") throw new Malformed();
  return value;
}

function required(fields: Fields, name: string): string {
  const value = textIn(fields, name);
  if (value === null || value.trim() === "") throw new Malformed();
  return value;
}

function listIn(fields: Fields, name: string): unknown[] {
  const value = fields[name] ?? null;
  if (value !== null && !Array.isArray(value)) throw new Malformed();
  return value ?? [];
}

function flagIn(fields: Fields, name: string): boolean {
  const value = fields[name] ?? null;
  if (value !== null && typeof value !== "boolean") throw new Malformed();
  return value ?? false;
}

function countIn(fields: Fields, name: string): number {
  const value = fields[name] ?? null;
  if (value === null) return 0;
  if (typeof value !== "number" || value < 0 || !Number.isInteger(value)) throw new Malformed();
  return value;
}
