/**
 * How one event changes one block of a message, as `src/palaver/core/fold/blocks.py` says it.
 *
 * Called by the fold alone. Pure, and never fails: an event that does not fit the block it names leaves it as it is. A
 * fragment only ever grows a block that still streams, a finished block says all of it, and a tool call that was made is
 * never written over; so the fold of a compacted log equals that of the full one.
 */

import type {
  Block,
  CitationAdded,
  FilesChanged,
  Part,
  RequestOpened,
  TextBlock,
  TextDelta,
  TextFinished,
  ThinkingBlock,
  ThinkingDelta,
  ThinkingFinished,
  ToolBlock,
  ToolCalled,
  ToolFinished,
  ToolInputDelta,
  ToolOutputDelta,
  ToolStarted,
  ToolStatus,
} from "../protocol/events.gen";

/** Live output kept of a running tool, in code points; cut only when twice as much has gathered. */
export const KEEP_OUTPUT_CHARS = 32_768;

const OPEN_TOOL: ReadonlySet<ToolStatus> = new Set(["input", "called", "waiting", "running"]);

/** A call without a result. */
export function isOpenTool(tool: ToolBlock): boolean {
  return OPEN_TOOL.has(tool.status);
}

export function ofContent(content: readonly Part[]): Block[] {
  return content.map((part, index) =>
    part.type === "text"
      ? { ...newText(index, part.text, "done"), blob: part.blob ?? null }
      : { type: "image", index, url: part.image_url.url },
  );
}

/** A cut attempt is taken back: what streamed stays to be seen, calls that nobody acted on are off. */
export function superseded(block: Block): Block {
  if ((block.type === "text" || block.type === "thinking") && block.status === "streaming") {
    return { ...block, status: "superseded" };
  }
  if (block.type === "tool" && (block.status === "input" || block.status === "called")) {
    return { ...block, status: "interrupted" };
  }
  return block;
}

// -- text and thinking

export function textGrown(known: Block | null, event: TextDelta): Block {
  if (known === null) return newText(event.block, event.text, "streaming");
  if (known.type === "text" && known.status === "streaming") return { ...known, text: known.text + event.text };
  return known;
}

export function textFinished(known: Block | null, event: TextFinished): Block {
  if (wasCalled(known)) return known;
  return {
    ...newText(event.block, event.text, event.interrupted ? "interrupted" : "done"),
    blob: event.blob ?? null,
    citations: known?.type === "text" ? known.citations : [],
  };
}

export function cited(known: Block | null, event: CitationAdded): Block {
  if (known === null) return { ...newText(event.block, "", "streaming"), citations: [event.citation] };
  return known.type === "text" ? { ...known, citations: [...known.citations, event.citation] } : known;
}

export function thinkingGrown(known: Block | null, event: ThinkingDelta): Block {
  if (known === null) return newThinking(event.block, event.text, "streaming");
  if (known.type === "thinking" && known.status === "streaming") return { ...known, text: known.text + event.text };
  return known;
}

export function thinkingFinished(known: Block | null, event: ThinkingFinished): Block {
  if (wasCalled(known)) return known;
  return {
    ...newThinking(event.block, event.text, event.interrupted ? "interrupted" : "done"),
    redacted: event.redacted ?? false,
    signature: event.signature ?? null,
    provider: event.provider ?? null,
    duration_ms: event.duration_ms ?? null,
  };
}

function newText(index: number, text: string, status: TextBlock["status"]): TextBlock {
  return { type: "text", index, text, status, blob: null, citations: [] };
}

function newThinking(index: number, text: string, status: ThinkingBlock["status"]): ThinkingBlock {
  return { type: "thinking", index, text, status, redacted: false, signature: null, provider: null, duration_ms: null };
}

function wasCalled(known: Block | null): known is ToolBlock {
  return known?.type === "tool" && known.status !== "input";
}

// -- tool calls: made, waiting, running, ended, in that order and never back

export function inputGrown(known: Block | null, event: ToolInputDelta): Block {
  const text = event.text ?? "";
  if (known === null) return { ...newTool(event, "input"), input_text: text };
  if (known.type === "tool" && known.status === "input" && known.call === event.call) {
    return { ...known, input_text: known.input_text + text };
  }
  return known;
}

export function called(known: Block | null, event: ToolCalled): Block {
  if (wasCalled(known)) return known;
  return { ...newTool(event, "called"), input: event.input ?? null, provider: event.provider ?? null };
}

export function waiting(tool: ToolBlock, event: RequestOpened): ToolBlock {
  if (!isOpenTool(tool)) return tool;
  // A call that runs goes on running while it asks: its effect stays unknown until its result.
  return { ...tool, status: tool.status === "running" ? "running" : "waiting", request: event.request };
}

export function answered(tool: ToolBlock): ToolBlock {
  return tool.status === "waiting" ? { ...tool, status: "called" } : tool;
}

export function toolStarted(tool: ToolBlock, event: ToolStarted): ToolBlock {
  return isOpenTool(tool) ? { ...tool, status: "running", grant: event.grant, started_at: event.ts } : tool;
}

export function outputGrown(tool: ToolBlock, event: ToolOutputDelta): ToolBlock {
  if (!isOpenTool(tool)) return tool;
  const output = tool.output + event.text;
  return isTooLong(output) ? { ...tool, output: tailOf(output), truncated: true } : { ...tool, output };
}

const FAILED: Readonly<Record<string, ToolStatus>> = { tool_interrupted: "interrupted", tool_denied: "denied" };

/** The first result is the result. */
export function toolFinished(tool: ToolBlock, event: ToolFinished): ToolBlock {
  if (!isOpenTool(tool)) return tool;
  const code = event.error?.code ?? "";
  const failed = Object.hasOwn(FAILED, code) ? FAILED[code] : undefined;
  return {
    ...tool,
    status: event.ok ? "ok" : (failed ?? "error"),
    output: event.output ?? "",
    error: event.error ?? null,
    truncated: event.truncated ?? false,
    blob: event.blob ?? null,
    total_lines: event.total_lines ?? null,
    total_bytes: event.total_bytes ?? null,
    exit_code: event.exit_code ?? null,
    finished_at: event.ts,
  };
}

/** Told before the result, by the call that did it. */
export function filesChanged(tool: ToolBlock, event: FilesChanged): ToolBlock {
  return isOpenTool(tool) ? { ...tool, changes: [...tool.changes, ...event.files] } : tool;
}

function newTool(event: { block: number; call: string; name: string }, status: ToolStatus): ToolBlock {
  return {
    type: "tool",
    index: event.block,
    call: event.call,
    name: event.name,
    status,
    input: null,
    input_text: "",
    output: "",
    error: null,
    truncated: false,
    blob: null,
    total_lines: null,
    total_bytes: null,
    exit_code: null,
    request: null,
    grant: null,
    provider: null,
    started_at: null,
    finished_at: null,
    changes: [],
  };
}

/** Counted in code points, as Python does. A string has at most as many of them as it has UTF-16 units. */
function isTooLong(output: string): boolean {
  if (output.length <= 2 * KEEP_OUTPUT_CHARS) return false;
  let count = output.length;
  for (let at = 1; at < output.length; at++) if (isPairEnd(output, at)) count--;
  return count > 2 * KEEP_OUTPUT_CHARS;
}

function tailOf(output: string): string {
  let from = output.length;
  for (let kept = 0; kept < KEEP_OUTPUT_CHARS; kept++) from -= isPairEnd(output, from - 1) ? 2 : 1;
  return output.slice(from);
}

function isPairEnd(text: string, at: number): boolean {
  return (text.charCodeAt(at) & 0xfc00) === 0xdc00 && (text.charCodeAt(at - 1) & 0xfc00) === 0xd800;
}
