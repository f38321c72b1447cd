/** An opened tool call. What it shows depends on what the call does; an unknown tool shows its input and output as they are. */

import { useMemo, type ReactNode } from "react";
import { kindOf, type ToolKind } from "../../model/toolkind";
import type { Answer, Message, PlanItem, ToolBlock } from "../../protocol/events.gen";
import { bytes, clock, exactTime, number } from "../../measures";
import { said } from "../../sentences";
import { text } from "../../text";
import { asking } from "../../text.asking";
import { later } from "../../text.later";
import { blobUrl } from "../../transport/api";
import { useConversationId } from "../conversation/scope";
import { Copy } from "../controls/Copy";
import { visible } from "../controls/visible";
import { Changes } from "../diff/Changes";
import { DiffView } from "../diff/DiffView";
import { diffOfCall } from "../../model/lines";
import { isPutDown, PlanItems } from "../dock/PlanLine";
import { sayResolution } from "../dock/resolution";
import { useMe } from "../me";
import { usePicked } from "../store";
import { Terminal } from "../terminal/Terminal";
import { useIsNewestPlan } from "./plans";
import { argument, isOpen, isUnanswered, questionsOf } from "./say";

interface ToolBodyProps {
  block: ToolBlock;
  kind: ToolKind;
}

export default function ToolBody({ block, kind }: ToolBodyProps) {
  // How a question ended stands below it; what the agent is told to make of that is for the agent.
  const error = isUnanswered(block) ? null : block.error;
  return (
    <div className="tool-body">
      <Subject block={block} kind={kind} />
      {error && error.message !== block.output && <p className="tool-error">{visible(said(error.message))}</p>}
      <Footer block={block} />
    </div>
  );
}

function Subject({ block, kind }: { block: ToolBlock; kind: ToolKind }) {
  if (kind === "shell") {
    return (
      <>
        <Shell block={block} />
        {block.changes.length > 0 && <Changes place={block.call} changes={block.changes} />}
      </>
    );
  }
  if (kind === "ask") return <Asked block={block} />;
  if (kind === "plan") return <Planned block={block} />;
  // What it did is worth more than what it was asked to do.
  if (block.changes.length > 0) {
    return (
      <>
        {edits(kind) && <DiffState block={block} />}
        <Changes place={block.call} changes={block.changes} />
        {block.status === "error" && <Output block={block} />}
      </>
    );
  }
  const diff = edits(kind) ? diffOfCall(block.name, block.input) : null;
  if (diff) {
    return (
      <>
        <DiffState block={block} />
        <DiffView label={diff.path} lines={diff.lines} />
        {block.status === "error" && <Output block={block} />}
      </>
    );
  }
  const plainInput = kind === "read" || kind === "list" || kind === "glob" || kind === "grep";
  return (
    <>
      {!(plainInput && fewArguments(block.input)) && <Input block={block} />}
      <Output block={block} />
    </>
  );
}

function edits(kind: ToolKind): boolean {
  return kind === "edit" || kind === "write" || kind === "patch";
}

/** What became of a change. */
function DiffState({ block }: { block: ToolBlock }) {
  const state = diffStateOf(block);
  return state && <p className={`diff-state is-${state}`}>{later.diff.states[state]}</p>;
}

function diffStateOf({ status, changes }: ToolBlock): keyof typeof later.diff.states | null {
  switch (status) {
    case "input":
    case "called":
    case "waiting":
      return "proposed";
    case "running":
      return null;
    case "ok":
      return "applied";
    case "denied":
      return "rejected";
    case "error":
      return changes.length > 0 ? "partly" : "failed";
    case "interrupted":
      return "interrupted";
  }
}

/** One argument is in the line already. */
function fewArguments(input: unknown): boolean {
  return input !== null && typeof input === "object" && Object.keys(input).length <= 1;
}

/** What was asked and what was answered. */
function Asked({ block }: { block: ToolBlock }) {
  const request = usePicked(useConversationId(), ({ state }) => state.requests.find((known) => known.id === block.request));
  const questions = request?.questions ?? questionsOf(block.input);
  const answers = (request?.resolution?.answers ?? []) as readonly Answer[];
  if (questions.length === 0) return <Output block={block} />;
  return (
    <dl className="asked">
      {questions.map(({ question }, at) => (
        <div key={at}>
          <dt>{visible(question)}</dt>
          <dd>{sayAnswer(answers.find((answer) => (answer.question_index ?? 0) === at)) || visible(block.output) || (isUnanswered(block) && asking.question.none)}</dd>
        </div>
      ))}
    </dl>
  );
}

function sayAnswer(answer: Answer | undefined): string {
  return [...(answer?.selected ?? []), answer?.custom_text].filter(Boolean).join(", ");
}

function Planned({ block }: { block: ToolBlock }) {
  const holds = useIsNewestPlan(block.call, true);
  const plan = usePicked(useConversationId(), ({ state }) => state.plan) ?? null;
  const items = holds && plan !== null && plan.items.length > 0 ? plan.items : planItemsOf(block.input);
  const before = usePicked(useConversationId(), ({ state }) => planBefore(state.messages, block.call)) ?? null;
  const changed = useMemo(() => changedIn(items, before === null ? null : planItemsOf(before)), [items, before]);
  const stopped = usePicked(useConversationId(), ({ state }) => isPutDown(state)) ?? false;
  if (items.length === 0) return <Generic block={block} />;
  return <PlanItems items={items} changed={changed} stopped={holds && stopped} />;
}

/** The input of the call that drew the plan before this one. */
function planBefore(messages: readonly Message[], call: string): unknown {
  const calls = messages.flatMap(({ blocks }) => blocks.filter((block) => block.type === "tool" && kindOf(block.name) === "plan"));
  const at = calls.findIndex((block) => block.type === "tool" && block.call === call);
  const before = calls[at - 1];
  return before?.type === "tool" ? before.input : null;
}

/** The steps that are new or stand otherwise than before; none when there was no plan before. */
function changedIn(items: readonly PlanItem[], before: readonly PlanItem[] | null): ReadonlySet<string> {
  if (before === null || before.length === 0) return new Set();
  const known = new Map(before.map(({ title, status }) => [title, status]));
  return new Set(items.filter(({ title, status }) => known.get(title) !== status).map(({ title }) => title));
}

function planItemsOf(input: unknown): PlanItem[] {
  if (input === null || typeof input !== "object") return [];
  const known = input as Record<string, unknown>;
  const items = known["items"] ?? known["todos"] ?? known["plan"];
  if (!Array.isArray(items)) return [];
  return items.flatMap((item: unknown) => {
    const title = argument(item, "title", "content", "step");
    if (title === null) return [];
    const status = argument(item, "status") ?? "pending";
    return [{ title, description: argument(item, "description"), status: STATUS[status] ?? "pending" }];
  });
}

/** The words the known programs use for the state of a step. */
const STATUS: Record<string, PlanItem["status"]> = {
  in_progress: "in_progress",
  done: "done",
  completed: "done",
  skipped: "skipped",
  cancelled: "skipped",
};

function Generic({ block }: { block: ToolBlock }) {
  return (
    <>
      <Input block={block} />
      <Output block={block} />
    </>
  );
}

function Shell({ block }: { block: ToolBlock }) {
  const command = argument(block.input, "command", "cmd", "script") ?? block.input_text;
  const printed = block.output !== "";
  return (
    <div className="shell">
      <div className="shell-command">
        <span className="shell-prompt" aria-hidden="true">
          $
        </span>
        <code>{visible(command)}</code>
        <Copy label={text.code.copy} content={() => command} />
      </div>
      {printed && <Terminal output={block.output} live={block.status === "running"} />}
      {!printed && <p className="tool-none">{isOpen(block) ? later.tool.waitingOutput : later.tool.noOutput}</p>}
    </div>
  );
}

function Input({ block }: { block: ToolBlock }) {
  const shown = block.input_text || (typeof block.input === "string" ? block.input : JSON.stringify(block.input, null, 2));
  if (!shown || shown === "{}" || shown === "null") return null;
  return (
    <Section heading={later.tool.input}>
      <pre className="plain-box" tabIndex={0}>
        {visible(shown)}
      </pre>
    </Section>
  );
}

function Output({ block }: { block: ToolBlock }) {
  if (block.output === "") {
    if (block.error) return null;
    return <p className="tool-none">{isOpen(block) ? later.tool.waitingOutput : later.tool.noOutput}</p>;
  }
  return (
    <Section heading={later.tool.output}>
      <Terminal output={block.output} live={block.status === "running"} />
    </Section>
  );
}

function Section({ heading, children }: { heading: string; children: ReactNode }) {
  return (
    <div className="tool-section">
      <p className="tool-heading">{heading}</p>
      {children}
    </div>
  );
}

function Footer({ block }: { block: ToolBlock }) {
  const me = useMe();
  const request = usePicked(useConversationId(), ({ state }) =>
    block.request === null ? undefined : state.requests.find((known) => known.id === block.request),
  );
  const took = block.started_at !== null && block.finished_at !== null ? block.finished_at - block.started_at : null;
  const words = [
    block.exit_code !== null && text.tool.exit(block.exit_code),
    block.started_at !== null && later.tool.startedAt(clock(block.started_at)),
    took !== null && later.tool.took(took),
    request?.resolution && sayResolution(request, me),
  ];
  const line = text.join(...words);
  return (
    <>
      {block.truncated && <Truncated block={block} />}
      {line && (
        <p className="tool-footer" title={block.started_at === null ? undefined : exactTime(block.started_at)}>
          {line}
        </p>
      )}
    </>
  );
}

function Truncated({ block }: { block: ToolBlock }) {
  const total =
    block.total_lines !== null
      ? text.tool.lines(block.total_lines)
      : block.total_bytes !== null
        ? bytes(block.total_bytes)
        : null;
  const shown = block.total_lines !== null ? number(block.output.split("\n").length) : bytes(block.output.length);
  return (
    <p className="tool-truncated">
      {total ? later.tool.truncated(shown, total) : later.tool.truncatedPlain}{" "}
      {block.blob && (
        <a href={blobUrl(block.blob.id)} target="_blank" rel="noopener">
          {later.tool.openFull}
        </a>
      )}
    </p>
  );
}

