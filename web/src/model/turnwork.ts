/**
 * Folds the work of each turn into one summary row: calls, thoughts and the texts between them, up to the final text.
 *
 * Called by the transcript at each flush, with the rows of the row book. The summary stands before the first row of the work. It
 * is open while the turn runs and closed when it is over, unless the reader chose otherwise; closed, it hides the rows of the
 * work except those that must be seen: calls that failed, were denied or interrupted or are still open, questions, plans, other
 * agents, and structured answers. A turn without a call has no summary.
 *
 * Loaded beside the markdown renderer. Goes on from the last turn before the first change, so a token costs the same in a long
 * conversation as in a short one.
 */

import type { ToolBlock } from "../protocol/events.gen";
import type { Row, TextRow, ThinkingRow, ToolGroupRow, ToolRow, TurnWorkRow } from "./rows";
import { parseSpecial } from "./special";
import { kindOf, type ToolKind } from "./toolkind";

type Foldable = TextRow | ThinkingRow | ToolRow | ToolGroupRow;

/** A row that the page adds by itself has a kind and a key, as all have. */
interface Keyed {
  readonly kind: string;
  readonly key: string;
}

/** Where a turn begins among the rows, and in what is shown of them. */
interface Place {
  readonly row: number;
  readonly shown: number;
}

/** What stands for itself: other agents, what a person was asked, what the agent reports at the end. */
const STANDS_OUT: ReadonlySet<ToolKind> = new Set(["ask", "task", "message", "finish"]);

export class TurnWork {
  private rows: readonly Keyed[] = [];
  private shown: Keyed[] = [];
  private places: Place[] = [];
  private live: string | null = null;
  private disclosure: ReadonlyMap<string, boolean> = new Map();
  private readonly kept = new Map<string, TurnWorkRow>();

  /** The rows to show. `live` is the turn that runs. Rows of a kind that is not known here are passed on. */
  fold<Other extends Keyed>(
    rows: readonly (Row | Other)[],
    live: string | null,
    disclosure: ReadonlyMap<string, boolean>,
  ): readonly (Row | TurnWorkRow | Other)[] {
    const place = this.goBack(rows, live, disclosure);
    const shown = this.shown.slice(0, place.shown);
    for (let at = place.row; at < rows.length; ) {
      this.places.push({ row: at, shown: shown.length });
      const end = endOfTurn(rows, at);
      this.put(shown, rows, at, end);
      at = end;
    }
    this.rows = rows;
    this.shown = shown;
    return shown as (Row | TurnWorkRow | Other)[];
  }

  /** The key of the closed summary that hides a row. */
  holderOf(key: string): string | null {
    for (const row of this.shown) {
      if (row.kind !== "work") continue;
      const { open, hidden } = row as TurnWorkRow;
      if (!open && hidden.some((one) => one.key === key)) return row.key;
    }
    return null;
  }

  private goBack(rows: readonly Keyed[], live: string | null, disclosure: ReadonlyMap<string, boolean>): Place {
    let same = 0;
    if (this.live === live && this.disclosure === disclosure) {
      const end = Math.min(rows.length, this.rows.length);
      while (same < end && rows[same] === this.rows[same]) same++;
    }
    this.live = live;
    this.disclosure = disclosure;
    // The turn a change is in is folded again as a whole; so is the last one, which what is new may belong to.
    while (this.places.length > 0 && (this.places.at(-1) as Place).row >= same) this.places.pop();
    return this.places.pop() ?? { row: 0, shown: 0 };
  }

  private put(shown: Keyed[], rows: readonly Keyed[], from: number, to: number): void {
    const work = this.workOf(rows, from, to);
    if (work === null) {
      for (let at = from; at < to; at++) shown.push(rows[at] as Keyed);
      return;
    }
    const hidden = new Set<Keyed>(work.row.open ? [] : work.row.hidden);
    for (let at = from; at < to; at++) {
      const row = rows[at] as Keyed;
      if (row === work.first) shown.push(work.row);
      if (!hidden.has(row)) shown.push(row);
    }
  }

  private workOf(rows: readonly Keyed[], from: number, to: number): { first: Foldable; row: TurnWorkRow } | null {
    const members = rows.slice(from, to).filter(isFoldable);
    const lastCall = members.findLastIndex(isCall);
    const first = members[0];
    if (first === undefined || lastCall < 0) return null;
    const { turn } = first;
    const live = turn !== null && turn === this.live;
    const key = `work:${turn ?? first.key}`;
    const calls = members.flatMap(callsIn);
    const lastPlan = calls.findLast(({ name }) => kindOf(name) === "plan");
    // The answer: what was said after the last call, or else what was said last.
    const said = members.findLastIndex(({ kind }) => kind === "text");
    const answer = said > lastCall ? lastCall + 1 : said;
    const hidden = members.filter((row, at) => !(row.kind === "text" && at >= answer) && !standsOut(row, lastPlan));
    const over = Math.max(...calls.map(({ finished_at }) => finished_at ?? 0));
    const row: TurnWorkRow = {
      kind: "work",
      key,
      seq: first.seq,
      ts: first.ts,
      messageId: first.messageId,
      first: first.first,
      agent: first.agent,
      model: first.model,
      messageStatus: first.messageStatus,
      turn,
      calls,
      live,
      open: this.disclosure.get(key) ?? live,
      durationMs: live || over === 0 ? null : over - first.ts,
      hidden,
    };
    return { first, row: this.keep(row) };
  }

  /** The row shown before under this key, if it says the same. */
  private keep(row: TurnWorkRow): TurnWorkRow {
    const known = this.kept.get(row.key);
    if (known !== undefined && isSame(known, row)) return known;
    this.kept.set(row.key, row);
    return row;
  }
}

/** Where the next turn begins. What a person or nobody in particular said in between belongs to no turn, and ends none. */
function endOfTurn(rows: readonly Keyed[], from: number): number {
  let turn: string | null | undefined;
  for (let at = from; at < rows.length; at++) {
    const row = rows[at] as Keyed;
    // A copy has no turns: there a person's words end what came before.
    if (row.kind === "user" && at > from && (turn ?? null) === null) return at;
    if (!isFoldable(row)) continue;
    if (turn !== undefined && turn !== row.turn) return at;
    turn = row.turn;
  }
  return rows.length;
}

function isFoldable(row: Keyed): row is Foldable {
  return row.kind === "text" || row.kind === "thinking" || row.kind === "tool" || row.kind === "tool_group";
}

function isCall(row: Foldable): boolean {
  return row.kind === "tool" || row.kind === "tool_group";
}

function callsIn(row: Foldable): ToolBlock[] {
  if (row.kind === "tool") return [row.block];
  return row.kind === "tool_group" ? row.tools.map(({ block }) => block) : [];
}

function standsOut(row: Foldable, lastPlan: ToolBlock | undefined): boolean {
  if (row.kind === "text") return row.block.status === "done" && parseSpecial(row.block.text) !== null;
  return callsIn(row).some((call) => call === lastPlan || call.status !== "ok" || STANDS_OUT.has(kindOf(call.name)));
}

function isSame(one: TurnWorkRow, other: TurnWorkRow): boolean {
  return (Object.keys(other) as (keyof TurnWorkRow)[]).every((key) => {
    const [before, now] = [one[key], other[key]];
    return before === now || (Array.isArray(before) && Array.isArray(now) && before.length === now.length && before.every((item, at) => item === now[at]));
  });
}
