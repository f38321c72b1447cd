/**
 * A conversation as the flat list of rows the transcript draws.
 *
 * Called by the store at each flush. A row keeps its identity as long as what it shows does not change, so a token
 * changes exactly one row. Holds data only; the words for it are in text.ts.
 */

import type {
  Block,
  ImageBlock,
  Message,
  Progress,
  Role,
  State,
  Stopped,
  TextBlock,
  ThinkingBlock,
  ToolBlock,
  Turn,
  TurnSummary,
  WireError,
} from "../protocol/events.gen";
import { isOpenTool } from "./blocks";
import { toolsAtWork } from "./status";

interface Placed {
  /** Stable and unique within the conversation; also the key of disclosure and selection. */
  readonly key: string;
  /** Seq of the message it belongs to (of the turn's end for marks): for deep links and search hits. */
  readonly seq: number;
  readonly ts: number;
}

interface OfMessage extends Placed {
  readonly messageId: string;
}

/** The first row of a message carries who speaks; the others continue it. */
interface OfAgent extends OfMessage {
  readonly first: boolean;
  readonly agent: string | null;
  readonly model: string | null;
  readonly messageStatus: Progress;
}

export interface UserRow extends OfMessage {
  readonly kind: "user";
  readonly message: Message;
  readonly text: string;
  readonly images: readonly string[];
}

export interface TextRow extends OfAgent {
  readonly kind: "text";
  readonly block: TextBlock;
  /** Set on the last block of a message that was cut by a limit or refused. */
  readonly finishReason: string | null;
}

export interface ThinkingRow extends OfAgent {
  readonly kind: "thinking";
  readonly block: ThinkingBlock;
}

export interface ImageRow extends OfAgent {
  readonly kind: "image";
  readonly block: ImageBlock;
}

export interface ToolRow extends OfAgent {
  readonly kind: "tool";
  readonly block: ToolBlock;
}

/** A run of reading and searching calls, shown as one line until asked. */
export interface ToolGroupRow extends OfAgent {
  readonly kind: "tool_group";
  readonly tools: readonly ToolRow[];
  /** The calls with the thinking between them, in order. */
  readonly members: readonly (ToolRow | ThinkingRow)[];
  readonly readCount: number;
  readonly searchCount: number;
  readonly listCount: number;
  readonly running: boolean;
  readonly failedCount: number;
  readonly waitingCount: number;
}

/** A message by nobody in particular: a process that ended, a summary, a system note. */
export interface NoteRow extends OfMessage {
  readonly kind: "note";
  readonly role: Exclude<Role, "user" | "assistant">;
  readonly eventKind: string | null;
  readonly message: Message;
  readonly text: string;
}

export interface InterruptedRow extends Placed {
  readonly kind: "interrupted";
  /** Known for the latest turn only. */
  readonly stopped: Stopped | null;
  readonly turn: TurnSummary | null;
  /** The latest thing in the conversation: Continue and Edit-and-resend make sense. */
  readonly last: boolean;
}

export interface ErrorRow extends Placed {
  readonly kind: "error";
  readonly error: WireError;
  readonly turn: TurnSummary;
}

export interface DayRow extends Placed {
  readonly kind: "day";
  /** Midnight, local time. */
  readonly day: number;
}

/** The end of the transcript while a turn runs. */
export interface ActivityRow extends Placed {
  readonly kind: "activity";
  readonly turn: Turn;
  /** The tool that runs or waits, if one does. */
  readonly tool: ToolBlock | null;
  readonly waiting: "approval" | "question" | "plan" | null;
}

export type Row =
  | UserRow
  | TextRow
  | ThinkingRow
  | ImageRow
  | ToolRow
  | ToolGroupRow
  | NoteRow
  | InterruptedRow
  | ErrorRow
  | DayRow
  | ActivityRow;

type BlockRow = TextRow | ThinkingRow | ImageRow | ToolRow;
type Exploring = "read" | "search" | "list";

/** What the built-in tools and those of the known agents are called when they only look. */
const EXPLORING: ReadonlyMap<string, Exploring> = new Map([
  ["read", "read"],
  ["list", "list"],
  ["ls", "list"],
  ["glob", "search"],
  ["grep", "search"],
  ["find", "search"],
]);

const FAILED: ReadonlySet<ToolBlock["status"]> = new Set(["error", "denied", "interrupted"]);

/** Every local day is longer than this; a message this far after midnight needs no calendar. */
const SHORTEST_DAY_MS = 22 * 3_600_000;

export function exploringKind(tool: ToolBlock): Exploring | null {
  return EXPLORING.get(tool.name.toLowerCase()) ?? null;
}

/** Remembers the rows of one conversation between flushes. */
export class RowBook {
  private readonly dayOf: (ts: number) => number;
  private readonly ofBlock = new WeakMap<Block, BlockRow>();
  private readonly ofMessage = new WeakMap<Message, UserRow | NoteRow>();
  /** Rows that belong to no single block or message, by key. */
  private kept = new Map<string, Row>();
  private used = new Map<string, Row>();
  private last: readonly Row[] = [];

  constructor(dayOf: (ts: number) => number) {
    this.dayOf = dayOf;
  }

  /** The same array when nothing in it changed. */
  rows(state: State): readonly Row[] {
    this.used = new Map();
    const rows = this.marked(state, this.grouped(this.flat(state)));
    this.kept = this.used;
    if (rows.length !== this.last.length || rows.some((row, at) => row !== this.last[at])) this.last = rows;
    return this.last;
  }

  // -- one row for every block, and days between them

  private flat(state: State): Row[] {
    const rows: Row[] = [];
    // Above the first message at hand there may be more of its day, so only the true beginning gets a divider.
    let day = state.offset === 0 ? -Infinity : Infinity;
    for (const message of state.messages) {
      if (!hasRows(message)) continue;
      if (message.ts < day || message.ts >= day + SHORTEST_DAY_MS) {
        const next = this.dayOf(message.ts);
        if (next !== day && day !== Infinity) rows.push(this.divider(message, next));
        day = next;
      }
      if (message.role === "assistant") this.pushBlocks(rows, message);
      else rows.push(this.messageRow(message, message.role));
    }
    return rows;
  }

  private divider(message: Message, day: number): Row {
    return this.keep({ kind: "day", key: `day:${message.id}`, seq: message.seq, ts: message.ts, day });
  }

  private pushBlocks(rows: Row[], message: Message): void {
    const shown = shownBlocks(message);
    shown.forEach((block, at) => rows.push(this.blockRow(message, block, at === 0, at === shown.length - 1)));
  }

  private blockRow(message: Message, block: Block, first: boolean, last: boolean): Row {
    const { agent, model, status: messageStatus } = message;
    const finishReason = last ? message.finish_reason : null;
    const known = this.ofBlock.get(block);
    if (
      known !== undefined &&
      known.first === first &&
      known.agent === agent &&
      known.model === model &&
      known.messageStatus === messageStatus &&
      (known.kind !== "text" || known.finishReason === finishReason)
    ) {
      return known;
    }
    const key = `${message.id}:${block.index}`;
    const placed = { key, seq: message.seq, ts: message.ts, messageId: message.id, first, agent, model, messageStatus };
    const row: BlockRow =
      block.type === "text"
        ? { kind: "text", ...placed, block, finishReason }
        : block.type === "thinking"
          ? { kind: "thinking", ...placed, block }
          : block.type === "tool"
            ? { kind: "tool", ...placed, block }
            : { kind: "image", ...placed, block };
    this.ofBlock.set(block, row);
    return row;
  }

  private messageRow(message: Message, role: Exclude<Role, "assistant">): Row {
    const known = this.ofMessage.get(message);
    if (known !== undefined) return known;
    const text = message.blocks.flatMap((block) => (block.type === "text" ? [block.text] : [])).join("\n");
    const placed = { key: message.id, seq: message.seq, ts: message.ts, messageId: message.id, message, text };
    const images = message.blocks.flatMap((block) => (block.type === "image" ? [block.url] : []));
    const row: UserRow | NoteRow =
      role === "user" ? { kind: "user", ...placed, images } : { kind: "note", ...placed, role, eventKind: message.event_kind };
    this.ofMessage.set(message, row);
    return row;
  }

  // -- runs of looking around become one row

  private grouped(rows: readonly Row[]): Row[] {
    const out: Row[] = [];
    let run: (ToolRow | ThinkingRow)[] = [];
    const close = () => {
      const end = run.findLastIndex((row) => row.kind === "tool") + 1;
      const members = run.slice(0, end);
      const tools = members.filter((row) => row.kind === "tool");
      if (tools.length > 1) out.push(this.group(members, tools));
      else out.push(...members);
      out.push(...run.slice(end));
      run = [];
    };
    for (const row of rows) {
      const explores = row.kind === "tool" && exploringKind(row.block) !== null;
      if (explores || (row.kind === "thinking" && run.length > 0)) run.push(row);
      else {
        close();
        out.push(row);
      }
    }
    close();
    return out;
  }

  private group(members: readonly (ToolRow | ThinkingRow)[], tools: readonly ToolRow[]): Row {
    const first = members[0] as ToolRow;
    const key = `group:${first.key}`;
    const known = this.kept.get(key);
    if (known?.kind === "tool_group" && sameItems(known.members, members)) {
      this.used.set(key, known);
      return known;
    }
    const count = (kind: Exploring) => tools.filter((tool) => exploringKind(tool.block) === kind).length;
    return this.keep({
      kind: "tool_group",
      key,
      seq: first.seq,
      ts: first.ts,
      messageId: first.messageId,
      first: first.first,
      agent: first.agent,
      model: first.model,
      messageStatus: (members.at(-1) as ToolRow).messageStatus,
      tools,
      members,
      readCount: count("read"),
      searchCount: count("search"),
      listCount: count("list"),
      running: tools.some((tool) => isOpenTool(tool.block)),
      failedCount: tools.filter((tool) => FAILED.has(tool.block.status)).length,
      waitingCount: tools.filter((tool) => tool.block.status === "waiting").length,
    });
  }

  // -- how turns ended, and what the running one does

  private marked(state: State, rows: Row[]): Row[] {
    const ends = this.endsOfTurns(state);
    if (ends.size > 0) this.insertAfterMessages(rows, ends);
    const atEnd = ends.get(null);
    if (atEnd !== undefined) rows.push(atEnd);
    if (state.turn !== null) rows.push(this.activity(state, state.turn));
    return rows;
  }

  /** Marks by the id of the message they follow; null: at the very end. */
  private endsOfTurns(state: State): Map<string | null, Row> {
    const ends = new Map<string | null, Row>();
    const shown = state.messages.filter(hasRows);
    const latest = state.last_turn;
    let latestPlaced: Message | null = null;
    shown.forEach((message, at) => {
      if (message.turn !== null && message.turn === latest?.id) latestPlaced = message;
      const cut = message.role === "assistant" && message.status === "interrupted";
      if (!cut || message.turn === latest?.id || shown[at + 1]?.turn === message.turn) return;
      ends.set(message.id, this.interrupted(message.id, message.seq, message.ts, null, false));
    });
    const mark = latest === null ? null : this.latestEnd(state, latest);
    if (mark !== null) {
      const after = latestPlaced as Message | null;
      ends.set(after === null || after === shown.at(-1) ? null : after.id, mark);
    }
    return ends;
  }

  private latestEnd(state: State, turn: TurnSummary): Row | null {
    const placed = { seq: state.messages.at(-1)?.seq ?? state.seq, ts: turn.ended_at };
    if (turn.outcome === "failed" && turn.error !== null) {
      return this.keep({ kind: "error", key: `error:${turn.id}`, ...placed, error: turn.error, turn });
    }
    if (turn.outcome !== "interrupted" && turn.outcome !== "limited") return null;
    const last = state.turn === null && state.messages.findLast((message) => message.turn !== null)?.turn === turn.id;
    return this.interrupted(turn.id, placed.seq, placed.ts, turn, last);
  }

  private interrupted(id: string, seq: number, ts: number, turn: TurnSummary | null, last: boolean): Row {
    const stopped = turn?.stopped ?? (turn?.outcome === "limited" ? "limit" : null);
    return this.keep({ kind: "interrupted", key: `end:${id}`, seq, ts, stopped, turn, last });
  }

  private insertAfterMessages(rows: Row[], ends: ReadonlyMap<string | null, Row>): void {
    for (let at = rows.length - 1; at >= 0; at--) {
      const row = rows[at] as Row;
      if (!("messageId" in row)) continue;
      const id = row.kind === "tool_group" ? (row.members.at(-1) as ToolRow).messageId : row.messageId;
      const next = rows[at + 1];
      if (next !== undefined && "messageId" in next && next.messageId === id) continue;
      const mark = ends.get(id);
      if (mark !== undefined) rows.splice(at + 1, 0, mark);
    }
  }

  private activity(state: State, turn: Turn): Row {
    const open = state.requests.find((request) => request.status === "open");
    const tool = toolsAtWork(state, turn).findLast(isOpenTool) ?? null;
    const seq = state.messages.at(-1)?.seq ?? state.seq;
    return this.keep({ kind: "activity", key: "activity", seq, ts: turn.started_at, turn, tool, waiting: open?.kind ?? null });
  }

  /** The row shown before under this key, if it says the same. */
  private keep(row: Row): Row {
    const known = this.kept.get(row.key);
    const same = known !== undefined && sameFields(known, row) ? known : row;
    this.used.set(row.key, same);
    return same;
  }
}

/** A cut attempt that another replaced is not shown, nor what is meant for the model alone. */
function hasRows(message: Message): boolean {
  if (message.hidden || message.status === "superseded") return false;
  return message.role !== "assistant" || shownBlocks(message).length > 0;
}

function shownBlocks(message: Message): Block[] {
  return message.blocks.some(isEmptyText) ? message.blocks.filter((block) => !isEmptyText(block)) : message.blocks;
}

function isEmptyText(block: Block): boolean {
  return block.type === "text" && block.text === "";
}

function sameItems(one: readonly unknown[], other: readonly unknown[]): boolean {
  return one.length === other.length && one.every((item, at) => item === other[at]);
}

function sameFields(one: object, other: object): boolean {
  return sameItems(Object.values(one), Object.values(other)) && sameItems(Object.keys(one), Object.keys(other));
}
