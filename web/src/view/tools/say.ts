/**
 * How a tool call is said in one line: verb, object, result. Called by tool rows, groups, the approval banner and the
 * activity line, so that one call has one name everywhere. A tool that is not known keeps its name.
 */

import type { ToolBlock } from "../../protocol/events.gen";
import { said } from "../../sentences";
import { text } from "../../text";
import type { IconName } from "../controls/Icon";
import { visible } from "../controls/visible";
import { total } from "../../model/changes";
import { statOfCall } from "../../model/stat";
import { kindOf, type ToolKind } from "../../model/toolkind";

export interface ToolLine {
  kind: ToolKind;
  icon: IconName;
  verb: string;
  object: string;
  /** The object is code: a path, a command, a pattern. */
  isCode: boolean;
  /** What came of it; empty while nothing did. */
  result: string;
}

const ICONS: Record<ToolKind, IconName> = {
  read: "file", list: "folder", glob: "search", grep: "search", edit: "edit", write: "edit", patch: "diff", shell: "terminal",
  fetch: "globe", search: "globe", plan: "plan", ask: "question", task: "users", message: "letter", yield: "hold",
  finish: "check", other: "tool",
};

/** The argument that says what a call is about, per kind; the first one present is taken. */
const OBJECTS: Record<ToolKind, readonly string[]> = {
  read: ["path", "file_path", "filename", "file", "notebook_path"],
  list: ["path", "dir_path", "directory"],
  glob: ["pattern", "glob", "query", "name"],
  grep: ["pattern", "query", "regex"],
  edit: ["path", "file_path", "notebook_path"],
  write: ["path", "file_path"],
  patch: ["path", "file_path"],
  shell: ["command", "cmd", "script"],
  fetch: ["url"],
  search: ["query", "q"],
  plan: ["summary", "title"],
  ask: ["question"],
  task: ["agent", "subagent_type", "description", "prompt"],
  message: ["agentId", "agent", "to"],
  yield: [],
  finish: [],
  other: ["path", "file_path", "command", "query", "pattern", "url", "name", "title", "id"],
};

const CODE: ReadonlySet<ToolKind> = new Set(["read", "list", "glob", "grep", "edit", "write", "patch", "shell", "fetch", "other"]);

/** The class of a row that says how a call stands; the colours and marks are in style/tools.css. */
export function stateClass(block: ToolBlock): string {
  const state = isUnanswered(block) ? "is-denied" : toneClass(block.status);
  return block.truncated ? `${state} truncated` : state;
}

export function toneClass(status: ToolBlock["status"]): string {
  return `${STATES[status]} is-${status}`;
}

const STATES: Record<ToolBlock["status"], string> = {
  input: "pending", called: "pending", waiting: "pending", running: "pending", ok: "success", error: "error", denied: "error",
  interrupted: "interrupted",
};

export function isOpen(block: ToolBlock): boolean {
  return block.status === "input" || block.status === "called" || block.status === "waiting" || block.status === "running";
}

/** An argument of a call as text. Arguments come from models: anything may be missing or of another type. */
export function argument(input: unknown, ...names: readonly string[]): string | null {
  if (typeof input === "string") return null;
  if (input === null || typeof input !== "object") return null;
  const known = input as Record<string, unknown>;
  for (const name of names) {
    const value = known[name];
    if (typeof value === "string" && value !== "") return value;
    if (Array.isArray(value) && value.length > 0 && value.every((part) => typeof part === "string")) return value.join(" ");
  }
  return null;
}

/** While arguments stream in they are half a JSON text; the first string in it is usually what the call is about. */
function streamedObject(inputText: string): string {
  const found = /"(?:path|file_path|command|cmd|pattern|query|url)"\s*:\s*"((?:[^"\\]|\\.)*)/.exec(inputText)?.[1] ?? "";
  return found.replaceAll("\\n", " ").replaceAll('\\"', '"').replaceAll("\\\\", "\\");
}

/** Long paths keep their end, which is what tells them apart. */
export function shortPath(path: string, keep = 4): string {
  const parts = path.split("/");
  return parts.length > keep + 1 ? `…/${parts.slice(-keep).join("/")}` : path;
}

function firstLine(value: string): string {
  const [line = "", ...rest] = value.trim().split("\n");
  return rest.length > 0 ? `${line} …` : line;
}

export function objectOf(name: string, input: unknown, inputText = ""): string {
  const kind = kindOf(name);
  const value = argument(input, ...OBJECTS[kind]) ?? (inputText ? streamedObject(inputText) : "");
  switch (kind) {
    case "read":
    case "edit":
    case "write":
    case "list":
      return shortPath(value || (kind === "list" ? "." : ""));
    case "patch":
      return value || patchedFiles(argument(input, "patch", "input", "diff") ?? "");
    case "grep": {
      const place = argument(input, "path", "include");
      return place ? `${value} ${text.tool.in(shortPath(place))}` : value;
    }
    case "ask":
      return firstLine(value || (questionsOf(input)[0]?.question ?? ""));
    case "other":
      return text.join(name, value && firstLine(value));
    default:
      return firstLine(value);
  }
}

/** The questions of a call that asks a person. */
export function questionsOf(input: unknown): { question: string }[] {
  const questions = input !== null && typeof input === "object" ? (input as Record<string, unknown>)["questions"] : null;
  if (!Array.isArray(questions)) return [];
  return questions.flatMap((one: unknown) => {
    const question = argument(one, "question");
    return question === null ? [] : [{ question }];
  });
}

function patchedFiles(patch: string): string {
  const files = [...patch.matchAll(/^(?:\*\*\* (?:Add|Update|Delete) File: |\+\+\+ (?:b\/)?)(.+)$/gm)].map((match) => match[1] ?? "");
  const [first] = files;
  if (first === undefined) return "";
  return files.length === 1 ? shortPath(first) : text.tool.files(files.length);
}

function countLines(output: string): number {
  const trimmed = output.endsWith("\n") ? output.slice(0, -1) : output;
  if (trimmed === "") return 0;
  let lines = 1;
  for (let at = trimmed.indexOf("\n"); at !== -1; at = trimmed.indexOf("\n", at + 1)) lines += 1;
  return lines;
}

/** A question that a person skipped, or that nobody came to answer: an outcome, not a failure. */
export function isUnanswered({ name, status, error }: ToolBlock): boolean {
  if (kindOf(name) !== "ask") return false;
  return status === "denied" || (status === "error" && (error?.code === "no_answer" || error?.code === "interaction_timeout"));
}

function resultOf(block: ToolBlock, kind: ToolKind): string {
  if (isUnanswered(block)) return text.tool.unanswered;
  switch (block.status) {
    case "input":
      return text.tool.preparing;
    case "called":
      return text.tool.called;
    case "waiting":
      return text.tool.waiting;
    case "running":
      return "";
    case "denied":
      return text.tool.denied;
    case "interrupted":
      return text.tool.interrupted;
    case "error":
      if (block.exit_code !== null) return text.tool.exit(block.exit_code);
      return text.join(text.tool.failed, block.error && visible(said(firstLine(block.error.message))));
    case "ok":
      return outcomeOf(block, kind);
  }
}

function outcomeOf(block: ToolBlock, kind: ToolKind): string {
  switch (kind) {
    case "read":
      return text.tool.lines(block.total_lines ?? countLines(block.output));
    case "list":
      return text.tool.lines(block.total_lines ?? countLines(block.output));
    case "glob":
    case "grep": {
      const found = block.total_lines ?? countLines(block.output);
      return found === 0 ? text.tool.nothing : text.tool.matches(found);
    }
    case "edit":
    case "write":
    case "patch": {
      if (block.changes.length > 0) return changesOf(block);
      const stat = statOfCall(block.name, block.input);
      return stat ? sayStat(stat.added, stat.removed) : "";
    }
    case "plan":
      return sayPlan(block.input);
    case "shell":
      if (isBackground(block.input)) return text.join(text.tool.background, changesOf(block));
      return text.join(block.exit_code !== null && block.exit_code !== 0 && text.tool.exit(block.exit_code), changesOf(block));
    default:
      return changesOf(block);
  }
}

/** Left to run on its own. */
function isBackground(input: unknown): boolean {
  const known = input !== null && typeof input === "object" ? (input as Record<string, unknown>) : {};
  return known["background"] === true || known["run_in_background"] === true;
}

/** "2 of 5 done" */
function sayPlan(input: unknown): string {
  const known = input !== null && typeof input === "object" ? (input as Record<string, unknown>) : {};
  const items = known["items"] ?? known["todos"] ?? known["plan"];
  if (!Array.isArray(items) || items.length === 0) return "";
  const done = items.filter((item: unknown) => /^(?:done|completed)$/.test(argument(item, "status") ?? "")).length;
  return text.plan.progress(done, items.length, 0);
}

/** "+12 −4" of one file, "3 files +12 −4" of several. */
function changesOf(block: ToolBlock): string {
  if (block.changes.length === 0) return "";
  const { added, removed } = total(block.changes);
  const files = new Set(block.changes.map((change) => change.path)).size;
  const many = files > 1 || kindOf(block.name) === "shell";
  return [many && text.tool.files(files), sayStat(added, removed)].filter(Boolean).join(" ");
}

function sayStat(added: number, removed: number): string {
  return [added > 0 && text.tool.added(added), removed > 0 && text.tool.removed(removed)].filter(Boolean).join(" ");
}

export function sayTool(block: ToolBlock): ToolLine {
  const kind = kindOf(block.name);
  return {
    kind,
    icon: ICONS[kind],
    verb: verbOf(block, kind),
    // A command must look like what it is, also in one line.
    object: visible(objectOf(block.name, block.input, block.input_text)),
    isCode: CODE.has(kind),
    result: resultOf(block, kind),
  };
}

/** Only what ran is said to have run. */
function verbOf(block: ToolBlock, kind: ToolKind): string {
  const [before, during, after] = text.tool.verbs[kind];
  if (block.status === "running") return during;
  const ended = block.status === "ok" || block.status === "error" || block.status === "interrupted";
  return ended && block.started_at !== null ? after : before;
}

/** "Explored · 3 files, 2 searches": distinct files, all searches. */
export function sayGroup(blocks: readonly ToolBlock[]): { verb: string; what: string; failed: number; live: boolean } {
  const files = new Set<string>();
  let searches = 0;
  let lists = 0;
  for (const block of blocks) {
    const kind = kindOf(block.name);
    if (kind === "read") files.add(argument(block.input, ...OBJECTS.read) ?? block.call);
    else if (kind === "list") lists += 1;
    else searches += 1;
  }
  const live = blocks.some(isOpen);
  const what = [
    files.size > 0 && text.tool.files(files.size),
    searches > 0 && text.tool.searches(searches),
    lists > 0 && text.tool.lists(lists),
  ];
  return {
    verb: live ? text.tool.exploring : text.tool.explored,
    what: what.filter(Boolean).join(", "),
    failed: blocks.filter((block) => block.status === "error" || block.status === "denied").length,
    live,
  };
}
