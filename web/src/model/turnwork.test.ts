import { describe, expect, test } from "vitest";
import { eventsOf, NAMES, startOf } from "../../tests/golden";
import type { State } from "../protocol/events.gen";
import { type AnyEvent, readEvent } from "../protocol/guards";
import { EMPTY_STATE, fold } from "./fold";
import { RowBook } from "./rowbook";
import type { Row, TurnWorkRow } from "./rows";
import { TurnWork } from "./turnwork";

const DAY_MS = 86_400_000;
const dayOf = (ts: number) => ts - (ts % DAY_MS);

type Shown = Row | TurnWorkRow;

class Talk {
  state: State = EMPTY_STATE;
  readonly book = new RowBook(dayOf);
  readonly work = new TurnWork();
  choices: ReadonlyMap<string, boolean> = new Map();

  add(...events: Record<string, unknown>[]): readonly Shown[] {
    const read = events.map((event, at) => {
      const seq = this.state.seq + at + 1;
      return readEvent({ seq, id: `e${seq}`, ts: 10 * DAY_MS + seq * 1000, conversation: "c", turn: "t", ...event }) as AnyEvent;
    });
    this.state = fold(this.state, read);
    return this.shown;
  }

  get shown(): readonly Shown[] {
    return this.work.fold(this.book.rows(this.state), this.state.turn?.id ?? null, this.choices);
  }

  /** Rows by their kind; calls by their names, summaries with a sign for open or closed. */
  get kinds(): string[] {
    return this.shown.flatMap((row) => {
      if (row.kind === "day" || row.kind === "activity") return [];
      if (row.kind === "tool") return [row.block.name];
      if (row.kind === "text") return [row.block.text];
      return [row.kind === "work" ? `work ${row.open ? "open" : "closed"}` : row.kind];
    });
  }

  get summary(): TurnWorkRow {
    return this.shown.find((row) => row.kind === "work") as TurnWorkRow;
  }
}

const STARTED = { type: "turn.started", agent: "ada", backend: "b", trigger: { kind: "message" } };
const FINISHED = { type: "turn.finished", outcome: "completed" };
const user = (message: string, text = "hi") => ({ type: "message.added", message, content: [{ type: "text", text }] });
const answer = (message = "m") => ({ type: "answer.started", message });
const said = (block: number, words: string, message = "m") => ({ type: "text.finished", message, block, text: words });
const thought = (block: number, message = "m") => ({ type: "thinking.finished", message, block, text: "hm" });
const call = (block: number, name: string, message = "m") => ({ type: "tool.called", message, block, call: `${message}-${block}`, name });
const result = (block: number, fields: object = { ok: true }, message = "m") => ({ type: "tool.finished", call: `${message}-${block}`, ...fields });
const TURN = [
  user("u"),
  STARTED,
  answer(),
  thought(0),
  said(1, "I look."),
  call(2, "shell"),
  result(2),
  call(3, "edit"),
  result(3),
  said(4, "Done."),
];

test("the work of a turn is open under its summary while the turn runs, and folds away when it is over", () => {
  const talk = new Talk();
  talk.add(...TURN);
  expect(talk.kinds).toEqual(["user", "work open", "thinking", "I look.", "shell", "edit", "Done."]);
  expect(talk.summary).toMatchObject({ live: true, durationMs: null });
  talk.add(FINISHED);
  expect(talk.kinds).toEqual(["user", "work closed", "Done."]);
  expect(talk.summary).toMatchObject({ live: false, durationMs: 6_000 });
  expect(talk.summary.calls.map(({ name }) => name)).toEqual(["shell", "edit"]);
});

test("what the reader chose holds, in a running turn and after it", () => {
  const talk = new Talk();
  talk.add(...TURN, call(5, "shell"));
  talk.choices = new Map([["work:t", false]]);
  expect(talk.kinds, "the call that runs stays in sight").toEqual(["user", "work closed", "Done.", "shell"]);
  talk.choices = new Map([["work:t", true]]);
  talk.add(result(5), FINISHED);
  expect(talk.kinds).toEqual(["user", "work open", "thinking", "I look.", "shell", "edit", "Done.", "shell"]);
});

test.each([
  ["failed", { ok: false, error: { code: "tool_error", message: "no" } }],
  ["was denied", { ok: false, error: { code: "tool_denied", message: "no" } }],
  ["was interrupted", { ok: false, error: { code: "tool_interrupted", message: "no" } }],
])("a call that %s stays in sight", (_, fields) => {
  const talk = new Talk();
  talk.add(user("u"), STARTED, answer(), call(0, "shell"), result(0), call(1, "edit"), result(1, fields), said(2, "So."), FINISHED);
  expect(talk.kinds).toEqual(["user", "work closed", "edit", "So."]);
});

test.each(["ask_user", "task", "agents_message", "finish_task"])("%s stands for itself", (name) => {
  const talk = new Talk();
  talk.add(user("u"), STARTED, answer(), call(0, "shell"), result(0), call(1, name), result(1), said(2, "So."), FINISHED);
  expect(talk.kinds).toEqual(["user", "work closed", name, "So."]);
});

test("of several plans the last stays in sight", () => {
  const talk = new Talk();
  talk.add(user("u"), STARTED, answer(), call(0, "plan"), result(0), call(1, "update_plan"), result(1), said(2, "So."), FINISHED);
  expect(talk.kinds).toEqual(["user", "work closed", "update_plan", "So."]);
});

test("a question in the middle of the work stays in sight, other JSON does not", () => {
  const talk = new Talk();
  const question = '{"type": "ask_user", "questions": ["Which?"]}';
  talk.add(user("u"), STARTED, answer(), said(0, question), said(1, '{"a": 1}'), call(2, "shell"), result(2), said(3, "So."), FINISHED);
  expect(talk.kinds).toEqual(["user", "work closed", question, "So."]);
});

test("a turn that ended with a call keeps what was said last", () => {
  const talk = new Talk();
  talk.add(user("u"), STARTED, answer(), said(0, "One."), said(1, "Two."), call(2, "shell"), result(2), FINISHED);
  expect(talk.kinds).toEqual(["user", "work closed", "Two."]);
});

test("a turn without a call has no summary", () => {
  const talk = new Talk();
  talk.add(user("u"), STARTED, answer(), thought(0), said(1, "Hello."), FINISHED);
  expect(talk.kinds).toEqual(["user", "thinking", "Hello."]);
});

test("a person's words in the middle of a turn stay in their place, and there is one summary", () => {
  const talk = new Talk();
  talk.add(user("u"), STARTED, answer(), call(0, "shell"), result(0), user("steer"), answer("n"), call(0, "edit", "n"), result(0, { ok: true }, "n"), said(1, "So.", "n"), FINISHED);
  expect(talk.kinds).toEqual(["user", "work closed", "user", "So."]);
});

test("a copy without turns has a summary for each message of a person", () => {
  const talk = new Talk();
  const none = { turn: null };
  for (const at of ["1", "2"]) {
    talk.add({ ...user(`u${at}`), ...none }, { ...answer(at), ...none }, { ...call(0, "shell", at), ...none });
    talk.add({ ...result(0, { ok: true }, at), ...none }, { ...said(1, `So ${at}.`, at), ...none });
  }
  expect(talk.kinds).toEqual(["user", "work closed", "So 1.", "user", "work closed", "So 2."]);
});

test("a hidden row leads to the summary that holds it", () => {
  const talk = new Talk();
  talk.add(...TURN, FINISHED);
  expect(talk.shown.some(({ key }) => key === "m:2")).toBe(false);
  expect(talk.work.holderOf("m:2")).toBe("work:t");
  expect(talk.work.holderOf("m:4")).toBeNull();
});

test("a token changes neither the summary nor the rows before", () => {
  const talk = new Talk();
  const before = talk.add(...TURN, { type: "text.delta", message: "m", block: 5, text: "a" });
  const after = talk.add({ type: "text.delta", message: "m", block: 5, text: "b" });
  expect(after.filter((row, at) => row !== before[at]).map(({ kind }) => kind)).toEqual(["text"]);
});

describe.each(NAMES)("golden log %s", (name) => {
  test("folds the same event by event and at once, with keys of their own, and hides no row for good", () => {
    const [book, live] = [new RowBook(dayOf), new TurnWork()];
    const none = new Map<string, boolean>();
    let state = startOf(name);
    for (const event of eventsOf(name)) {
      state = fold(state, [event]);
      const rows = book.rows(state);
      const shown = live.fold(rows, state.turn?.id ?? null, none);
      expect(new Set(shown.map(({ key }) => key)).size, `${name} at ${event.seq}`).toBe(shown.length);
      if (event.seq % 7 === 0) expect(new TurnWork().fold(rows, state.turn?.id ?? null, none)).toEqual(shown);
      const seen = new Set(shown.map(({ key }) => key));
      for (const { key } of rows) expect(seen.has(key) || live.holderOf(key) !== null, `${key} at ${event.seq}`).toBe(true);
    }
  });
});
