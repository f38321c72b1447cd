/**
 * Makes the rows of one conversation and remembers them between flushes.
 *
 * Called by the conversation at each flush. Messages that did not change are not looked at again: making goes on from the
 * last place before the first change where nothing was left open, so a token costs the same in a long conversation as in
 * a short one.
 */

import type { Block, FileChange, Message, Role, State, ToolBlock, Turn, TurnSummary } from "../protocol/events.gen";
import { isOpenTool } from "./blocks";
import { type CompressedRange, compressedRanges } from "./compressed";
import type { AttemptRow, ImageRow, NoteRow, Row, TextRow, ThinkingRow, ToolRow, UserRow } from "./rows";
import { toolsAtWork } from "./status";
import { isExploring } from "./toolkind";

type BlockRow = TextRow | ThinkingRow | ImageRow | ToolRow;
type Member = ToolRow | ThinkingRow;

/** Words to the agent that people want to see too: what became of a process or a plan. */
const TOLD: ReadonlySet<string> = new Set(["process_completed", "plan_approved", "plan_revised", "plan_rejected"]);

const IDLE_PROMPT = "idle_prompt";

/** Every local day is longer than this; a message this far after midnight needs no calendar. */
const SHORTEST_DAY_MS = 22 * 3_600_000;

/** The making of rows, before one of the messages: what is done, and what the next one needs to know. */
interface Place {
  readonly rowCount: number;
  readonly day: number;
  readonly previous: Message | null;
  readonly work: Work;
}

/** What a turn did to files so far. */
interface Work {
  readonly turn: string | null;
  readonly seq: number;
  readonly ts: number;
  readonly changes: readonly FileChange[];
}

const NO_WORK: Work = { turn: null, seq: 0, ts: 0, changes: [] };

export class RowBook {
  private readonly dayOf: (ts: number) => number;
  private readonly ofBlock = new WeakMap<Block, BlockRow>();
  private readonly ofMessage = new WeakMap<Message, UserRow | NoteRow | AttemptRow>();
  /** Rows that belong to no single block or message, by key. */
  private readonly kept = new Map<string, Row>();
  private state: State | null = null;
  /** Rows of all messages but those of the run that is open, and the places to go on from. */
  private made: Row[] = [];
  private places: (Place | null)[] = [];
  /** Looking around, until something else comes. */
  private run: Member[] = [];
  private day = 0;
  private previous: Message | null = null;
  private work = NO_WORK;
  private ranges: readonly CompressedRange[] = [];
  private last: readonly Row[] = [];

  constructor(dayOf: (ts: number) => number) {
    this.dayOf = dayOf;
  }

  /** The same array when nothing in it changed. */
  rows(state: State): readonly Row[] {
    const from = this.goBack(state);
    this.state = state;
    for (let at = from; at < state.messages.length; at++) {
      // A run that is open may still grow: only where none is can making begin again.
      this.places[at] = this.run.length > 0 ? null : this.here();
      this.add(state.messages[at] as Message);
    }
    this.places.length = state.messages.length;
    const rows = this.made.concat(this.closed(), this.end(state));
    if (!isSame(rows, this.last)) this.last = rows;
    return this.last;
  }

  // -- where to go on from

  private here(): Place {
    return { rowCount: this.made.length, day: this.day, previous: this.previous, work: this.work };
  }

  /** Takes back what depends on a change. The message to go on with. */
  private goBack(state: State): number {
    const known = this.state;
    const sameRanges = known !== null && known.compressions === state.compressions;
    if (!sameRanges) this.ranges = compressedRanges(state.compressions);
    const sameFrame = sameRanges && (known.offset === 0) === (state.offset === 0);
    let at = sameFrame ? firstChange(known.messages, state.messages) : 0;
    while (at > 0 && (this.places[at] ?? null) === null) at--;
    // Above the first message at hand there may be more of its day, so only the true beginning gets a divider.
    const start: Place = { rowCount: 0, day: state.offset === 0 ? -Infinity : Infinity, previous: null, work: NO_WORK };
    const place = at === 0 ? start : (this.places[at] as Place);
    this.made.length = place.rowCount;
    this.day = place.day;
    this.previous = place.previous;
    this.work = place.work;
    this.run = [];
    return at;
  }

  // -- one message

  private add(message: Message): void {
    if (!hasRows(message)) return;
    this.takeUpWork(message);
    if (this.previous !== null) {
      this.endTurn(this.previous, message);
      for (const row of this.horizons(this.previous.seq, message.seq)) this.put(row);
    }
    this.divide(message);
    if (message.status === "superseded") this.put(this.attempt(message));
    else if (message.role === "assistant") {
      this.announceSwitch(message);
      const shown = shownBlocks(message);
      shown.forEach((block, at) => this.put(this.blockRow(message, block, at === 0, at === shown.length - 1)));
    } else this.put(this.messageRow(message, message.role));
    this.previous = message;
  }

  private announceSwitch({ id: messageId, seq, ts, switch: change }: Message): void {
    if (change !== null) this.put(this.keep({ kind: "switch", key: `switch:${messageId}`, seq, ts, messageId, switch: change }));
  }

  private attempt(message: Message): Row {
    const known = this.ofMessage.get(message);
    if (known !== undefined) return known;
    const { id, seq, ts } = message;
    const text = message.blocks.flatMap((block) => (block.type === "text" || block.type === "thinking" ? [block.text] : []));
    const row: AttemptRow = { kind: "attempt", key: id, seq, ts, messageId: id, text: text.join("\n\n") };
    this.ofMessage.set(message, row);
    return row;
  }

  /** The ends of what the model is shown less of, between two messages. */
  private horizons(after: number, upTo: number): Row[] {
    return this.ranges
      .filter(({ horizon }) => horizon > after && horizon <= upTo)
      .map((range) => {
        const { ts } = range.stages.at(-1) as CompressedRange["stages"][number];
        return this.keep({ kind: "compressed", key: `compressed:${range.horizon}`, seq: range.horizon, ts, range });
      });
  }

  // -- what a turn did to files

  private takeUpWork(message: Message): void {
    // What is told in between belongs to no turn, and ends none.
    const turn = message.turn ?? (message.role === "event" ? this.work.turn : null);
    // A copy (a branch, an import) has no turns: there a person's words end what came before.
    if (turn !== this.work.turn || (turn === null && message.role === "user")) {
      for (const row of this.changes()) this.put(row);
      this.work = { ...NO_WORK, turn };
    }
    const fresh = message.blocks.flatMap((block) => (block.type === "tool" ? block.changes : []));
    if (fresh.length === 0) return;
    this.work = { turn, seq: message.seq, ts: message.ts, changes: [...this.work.changes, ...fresh] };
  }

  private changes(): Row[] {
    const { turn, seq, ts, changes } = this.work;
    if (changes.length === 0) return [];
    return [this.keep({ kind: "changes", key: `changes:${turn ?? seq}`, seq, ts, changes })];
  }

  /** Runs of looking around become one row; any edit, command, text or message of a person ends them. */
  private put(row: Row): void {
    const explores = row.kind === "tool" && isExploring(row.block.name);
    if (explores || (row.kind === "thinking" && this.run.length > 0)) this.run.push(row);
    else {
      this.close();
      this.made.push(row);
    }
  }

  private close(): void {
    this.made.push(...this.closed());
    this.run = [];
  }

  private divide(message: Message): void {
    if (message.ts >= this.day && message.ts < this.day + SHORTEST_DAY_MS) return;
    const day = this.dayOf(message.ts);
    if (day !== this.day && this.day !== Infinity) {
      this.put(this.keep({ kind: "day", key: `day:${message.id}`, seq: message.seq, ts: message.ts, day }));
    }
    this.day = day;
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
    const { id: messageId, seq, ts, turn } = message;
    const placed = { key, seq, ts, messageId, first, agent, model, messageStatus, turn };
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
    const eventKind = message.event_kind;
    // What a model has to take for a person's words, and no person said.
    const note = role === "user" && eventKind === IDLE_PROMPT ? "event" : role;
    const row: UserRow | NoteRow =
      note === "user" ? { kind: "user", ...placed, images } : { kind: "note", ...placed, role: note, eventKind };
    this.ofMessage.set(message, row);
    return row;
  }

  // -- groups

  /** What the open run would be if it ended here. Thinking after its last call is no part of it. */
  private closed(): Row[] {
    const end = this.run.findLastIndex((row) => row.kind === "tool") + 1;
    const members = this.run.slice(0, end);
    const tools = members.filter((row) => row.kind === "tool");
    return tools.length > 1 ? [this.group(members, tools), ...this.run.slice(end)] : this.run;
  }

  private group(members: readonly Member[], tools: readonly ToolRow[]): Row {
    const first = members[0] as ToolRow;
    const last = members.at(-1) as Member;
    const key = `group:${first.key}`;
    const known = this.kept.get(key);
    if (known?.kind === "tool_group" && isSame(known.members, members)) return known;
    return this.keep({
      kind: "tool_group",
      key,
      seq: first.seq,
      ts: first.ts,
      messageId: first.messageId,
      first: first.first,
      agent: first.agent,
      model: first.model,
      messageStatus: last.messageStatus,
      turn: last.turn,
      tools,
      members,
    });
  }

  // -- how turns ended, and what the running one does

  /** Between two messages: whether a turn ended here in a way that should be seen. */
  private endTurn(before: Message, after: Message): void {
    if (before.turn === after.turn) return;
    const mark = this.endOf(before, false);
    if (mark !== null) this.put(mark);
  }

  private end(state: State): Row[] {
    const rows: Row[] = state.turn !== null && state.turn.id === this.work.turn ? [] : this.changes();
    const mark = this.previous === null ? null : this.endOf(this.previous, state.turn === null);
    if (mark !== null) rows.push(mark);
    else if (state.last_turn !== null && lastOfTurn(state, state.last_turn.id) === undefined) {
      // A turn that left no message is marked at the end while nothing else is there.
      const alone = this.turnEnd(state.last_turn, this.previous, state.turn === null);
      if (alone !== null) rows.push(alone);
    }
    if (this.previous !== null) rows.push(...this.horizons(this.previous.seq, Infinity));
    if (state.turn !== null) rows.push(this.activity(state, state.turn));
    return rows;
  }

  private endOf(message: Message, last: boolean): Row | null {
    if (message.ended !== null) return this.turnEnd(message.ended, message, last);
    const cut = message.role === "assistant" && message.status === "interrupted";
    return cut && !last ? this.interrupted(message.id, message, null, false) : null;
  }

  private turnEnd(turn: TurnSummary, after: Message | null, last: boolean): Row | null {
    if (turn.outcome === "failed" && turn.error !== null) {
      const placed = { key: `error:${turn.id}`, seq: after?.seq ?? 0, ts: turn.ended_at };
      return this.keep({ kind: "error", ...placed, error: turn.error, turn });
    }
    const stopped = turn.outcome === "interrupted" || turn.outcome === "limited";
    return stopped ? this.interrupted(turn.id, after, turn, last) : null;
  }

  private interrupted(id: string, after: Message | null, turn: TurnSummary | null, last: boolean): Row {
    const stopped = turn?.stopped ?? (turn?.outcome === "limited" ? "limit" : null);
    const placed = { key: `end:${id}`, seq: after?.seq ?? 0, ts: turn?.ended_at ?? after?.ts ?? 0 };
    return this.keep({ kind: "interrupted", ...placed, stopped, turn, last });
  }

  private activity(state: State, turn: Turn): Row {
    const open = state.requests.find((request) => request.status === "open");
    const tool = callAtWork(toolsAtWork(state, turn));
    const placed = { key: "activity", seq: this.previous?.seq ?? 0, ts: turn.started_at };
    return this.keep({ kind: "activity", ...placed, turn, tool, waiting: open?.kind ?? null });
  }

  /** The row shown before under this key, if it says the same. */
  private keep(row: Row): Row {
    const known = this.kept.get(row.key);
    if (known !== undefined && isSame(Object.values(known), Object.values(row))) return known;
    this.kept.set(row.key, row);
    return row;
  }
}

/** The call that runs, as the bus's `activity.py` says it: the one that started last. While none runs, the next one. */
function callAtWork(tools: readonly ToolBlock[]): ToolBlock | null {
  const running = tools.filter(({ status }) => status === "running");
  if (running.length === 0) return tools.find(isOpenTool) ?? null;
  return running.reduce((latest, tool) => ((tool.started_at ?? 0) > (latest.started_at ?? 0) ? tool : latest));
}

/** What is meant for the model alone is not shown, nor a message that says nothing yet. */
function hasRows(message: Message): boolean {
  if (message.hidden && !TOLD.has(message.event_kind ?? "")) return false;
  return message.role !== "assistant" || message.blocks.some((block) => !isEmptyText(block));
}

function shownBlocks(message: Message): Block[] {
  return message.blocks.some(isEmptyText) ? message.blocks.filter((block) => !isEmptyText(block)) : message.blocks;
}

function isEmptyText(block: Block): boolean {
  return block.type === "text" && block.text === "";
}

/** What a turn left last. Others may have spoken in between. */
function lastOfTurn(state: State, turn: string): Message | undefined {
  return state.messages.findLast((message) => message.turn === turn && hasRows(message));
}

/** Where two lists of messages begin to differ. */
function firstChange(one: readonly Message[], other: readonly Message[]): number {
  const end = Math.min(one.length, other.length);
  for (let at = 0; at < end; at++) if (one[at] !== other[at]) return at;
  return end;
}

/** From the end, where changes are. */
function isSame(one: readonly unknown[], other: readonly unknown[]): boolean {
  if (one.length !== other.length) return false;
  for (let at = one.length - 1; at >= 0; at--) if (one[at] !== other[at]) return false;
  return true;
}
