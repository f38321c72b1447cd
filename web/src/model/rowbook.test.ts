import { describe, expect, test } from "vitest";
import { eventsOf, NAMES, startOf } from "../../tests/golden";
import type { State } from "../protocol/events.gen";
import { type AnyEvent, readEvent } from "../protocol/guards";
import { EMPTY_STATE, fold } from "./fold";
import { RowBook } from "./rowbook";
import type { Row } from "./rows";

const DAY_MS = 86_400_000;
const dayOf = (ts: number) => ts - (ts % DAY_MS);

/** A conversation written as events, folded and shown. */
class Talk {
  state: State = EMPTY_STATE;
  readonly book = new RowBook(dayOf);
  now = 10 * DAY_MS;

  add(...events: Record<string, unknown>[]): readonly Row[] {
    const read = events.map((event, at) => {
      const seq = this.state.seq + at + 1;
      return readEvent({ seq, id: `e${seq}`, ts: this.now, conversation: "c", turn: "t", ...event }) as AnyEvent;
    });
    this.state = fold(this.state, read);
    return this.rows;
  }

  get rows(): readonly Row[] {
    return this.book.rows(this.state);
  }

  get kinds(): string[] {
    return this.rows.map((row) => row.kind);
  }
}

const STARTED = { type: "turn.started", agent: "ada", backend: "b", trigger: { kind: "message" } };
const FINISHED = { type: "turn.finished", outcome: "completed" };
const ANSWER = { type: "answer.started", message: "m" };
const user = (message: string, text = "hi") => ({ type: "message.added", message, content: [{ type: "text", text }] });
const text = (block: number, words: string, message = "m") => ({ type: "text.finished", message, block, text: words });
const delta = (block: number, words: string, message = "m") => ({ type: "text.delta", message, block, text: words });
const thought = (block: number, message = "m") => ({ type: "thinking.finished", message, block, text: "hm" });
const call = (block: number, name: string, message = "m") => ({
  type: "tool.called",
  message,
  block,
  call: `${message}-k${block}`,
  name,
});
const result = (block: number, fields: object = { ok: true }, message = "m") => ({
  type: "tool.finished",
  call: `${message}-k${block}`,
  ...fields,
});

test("a message of a person is one row, an agent's one for each block, and the running turn one at the end", () => {
  const talk = new Talk();
  talk.add(STARTED, user("u"), ANSWER, thought(0), text(1, "hello"), call(2, "shell"));
  expect(talk.kinds).toEqual(["day", "user", "thinking", "text", "tool", "activity"]);
  expect(talk.rows[2]).toMatchObject({ key: "m:0", first: true, agent: "ada", messageId: "m" });
  expect(talk.rows[3]).toMatchObject({ key: "m:1", first: false });
  talk.add(result(2), { type: "answer.finished", message: "m", finish_reason: "stop" }, FINISHED);
  expect(talk.kinds).toEqual(["day", "user", "thinking", "text", "tool"]);
});

test("a token changes one row, and the array only when a row did", () => {
  const talk = new Talk();
  const before = talk.add(STARTED, user("u"), ANSWER, thought(0), call(1, "read"), call(2, "grep"), delta(3, "a"));
  const after = talk.add(delta(3, "b"));
  const changed = after.filter((row, at) => row !== before[at]);
  expect(changed).toMatchObject([{ kind: "text", block: { text: "ab" } }]);
  expect(talk.add({ type: "grant.added", tool: "x", scope: "once" })).toBe(after);
});

describe.each(NAMES)("golden log %s", (name) => {
  test("has rows with keys of their own at every event, and the same rows when read at once", () => {
    const live = new RowBook(dayOf);
    let state = startOf(name);
    for (const event of eventsOf(name)) {
      state = fold(state, [event]);
      const rows = live.rows(state);
      expect(new Set(rows.map((row) => row.key)).size, `${name} at ${event.seq}`).toBe(rows.length);
      // A reader who opens the page now must see what one sees who was there all along.
      if (event.seq % 7 === 0) expect(new RowBook(dayOf).rows(state)).toEqual(rows);
    }
    expect(new RowBook(dayOf).rows(state)).toEqual(live.rows(state));
  });
});

describe("groups", () => {
  test("runs of looking around become one row, over several answers and the thinking between", () => {
    const talk = new Talk();
    talk.add(STARTED, ANSWER, thought(0), call(1, "read"), call(2, "glob"));
    talk.add({ ...ANSWER, message: "n" }, thought(0, "n"), call(1, "Read", "n"), call(2, "list", "n"), call(3, "grep", "n"));
    expect(talk.kinds).toEqual(["day", "thinking", "tool_group", "activity"]);
    const group = talk.rows[2];
    expect(group?.kind === "tool_group" && group.members.map((row) => row.kind)).toEqual([
      "tool",
      "tool",
      "thinking",
      "tool",
      "tool",
      "tool",
    ]);
  });

  test.each([
    ["an edit", call(2, "edit")],
    ["a command", call(2, "shell")],
    ["text", text(2, "so")],
  ])("are closed by %s", (_, between) => {
    const talk = new Talk();
    talk.add(STARTED, ANSWER, call(0, "read"), call(1, "read"), between, call(3, "grep"), call(4, "grep"));
    expect(talk.kinds).toEqual(["day", "tool_group", between.type === "tool.called" ? "tool" : "text", "tool_group", "activity"]);
  });

  test("are closed by a message of a person", () => {
    const talk = new Talk();
    talk.add(STARTED, ANSWER, call(0, "read"), call(1, "read"), user("u"), { ...ANSWER, message: "n" }, call(0, "read", "n"));
    expect(talk.kinds).toEqual(["day", "tool_group", "user", "tool", "activity"]);
  });

  test("hold the tools of every program that only looks", () => {
    const talk = new Talk();
    talk.add(STARTED, ANSWER, call(0, "read_file"), call(1, "search_file_content"), call(2, "mcp__files__list_directory"));
    expect(talk.kinds).toEqual(["day", "tool_group", "activity"]);
  });

  test("keep their identity while nothing in them changes", () => {
    const talk = new Talk();
    const before = talk.add(STARTED, ANSWER, call(0, "read"), call(1, "read"), text(2, "a"));
    const after = talk.add(delta(3, "more"));
    expect(after[1]).toBe(before[1]);
  });

  test("of one are no group", () => {
    const talk = new Talk();
    talk.add(STARTED, ANSWER, call(0, "read"), thought(1), text(2, "a"));
    expect(talk.kinds).toEqual(["day", "tool", "thinking", "text", "activity"]);
  });
});

describe("the end of a turn", () => {
  const INTERRUPTED = { type: "turn.interrupted", reason: "user", origin: { user: "ada" } };
  const CUT = { type: "answer.finished", message: "m", finish_reason: "interrupted", interrupted: true };

  test("by a stop is marked after what it left, with who did it", () => {
    const talk = new Talk();
    talk.add(STARTED, user("u"), ANSWER, delta(0, "half"), CUT, INTERRUPTED);
    expect(talk.kinds).toEqual(["day", "user", "text", "interrupted"]);
    expect(talk.rows[3]).toMatchObject({ stopped: "user", last: true, turn: { by: { user: "ada" } } });
  });

  test("stays marked where it was when the talk goes on", () => {
    const talk = new Talk();
    talk.add(STARTED, user("u"), ANSWER, delta(0, "half"), CUT, INTERRUPTED);
    talk.add({ ...user("v"), turn: "t2" }, { ...STARTED, turn: "t2" });
    expect(talk.kinds).toEqual(["day", "user", "text", "interrupted", "user", "activity"]);
    expect(talk.rows[3]).toMatchObject({ last: false, stopped: "user" });
    talk.add({ ...ANSWER, message: "n", turn: "t2" }, text(0, "yes", "n"), { ...FINISHED, turn: "t2" });
    expect(talk.kinds).toEqual(["day", "user", "text", "interrupted", "user", "text"]);
    expect(talk.rows[3]).toMatchObject({ last: false, stopped: "user" });
  });

  test("by a stop before the first word is marked too", () => {
    const talk = new Talk();
    talk.add(STARTED, user("u"), ANSWER, CUT, INTERRUPTED);
    expect(talk.kinds).toEqual(["day", "user", "interrupted"]);
  });

  test("by a failure shows its error, also while the next turn runs", () => {
    const talk = new Talk();
    const error = { code: "provider_refused", message: "No credit." };
    talk.add(STARTED, user("u"), { type: "turn.finished", outcome: "failed", error });
    expect(talk.rows.at(-1)).toMatchObject({ kind: "error", error });
    talk.add({ ...user("v"), turn: "t2" }, { ...STARTED, turn: "t2" });
    expect(talk.kinds).toEqual(["day", "user", "error", "user", "activity"]);
  });

  test("is marked once, after the last thing the turn left, whoever spoke in between", () => {
    const talk = new Talk();
    talk.add(STARTED, user("u"), ANSWER, delta(0, "one"), { ...user("n", "A process ended."), role: "event", turn: null });
    talk.add({ ...ANSWER, message: "n2" }, delta(0, "two", "n2"), INTERRUPTED, { ...user("v"), turn: "t2" });
    expect(talk.kinds).toEqual(["day", "user", "text", "note", "text", "interrupted", "user"]);
  });

  test("by a limit is a mark and not an error", () => {
    const talk = new Talk();
    talk.add(STARTED, user("u"), ANSWER, text(0, "a"), { type: "turn.finished", outcome: "limited" });
    expect(talk.rows.at(-1)).toMatchObject({ kind: "interrupted", stopped: "limit" });
  });
});

test("an attempt that was replaced is one folded row, and what is meant for the model alone is none", () => {
  const talk = new Talk();
  talk.add(STARTED, ANSWER, delta(0, "cut"), { ...ANSWER, message: "n", replaces: "m" }, text(0, "whole", "n"));
  talk.add({ ...user("h"), hidden: true });
  expect(talk.kinds).toEqual(["day", "attempt", "text", "activity"]);
  expect(talk.rows[1]).toMatchObject({ text: "cut" });
  expect(talk.rows[2]).toMatchObject({ block: { text: "whole" } });
});

test("what neither a person nor the agent said is a note", () => {
  const talk = new Talk();
  talk.add({ ...user("n", "Tests ended."), role: "event", event_kind: "process_completed" });
  expect(talk.rows[1]).toMatchObject({ kind: "note", role: "event", eventKind: "process_completed", text: "Tests ended." });
});

test("the end of a process is told although the message is for the agent", () => {
  const talk = new Talk();
  talk.add(STARTED, user("u"), ANSWER, text(0, "a"), FINISHED);
  talk.add({ ...user("p", "Process ended."), role: "event", event_kind: "process_completed", hidden: true, turn: null });
  expect(talk.kinds).toEqual(["day", "user", "text", "note"]);
});

test("another model is announced before its first answer", () => {
  const talk = new Talk();
  talk.add(STARTED, user("u"), { type: "model.switched", to_model: "small", from_model: "large", reason: "busy" });
  expect(talk.kinds).toEqual(["day", "user", "activity"]);
  talk.add(ANSWER, text(0, "a"));
  expect(talk.kinds).toEqual(["day", "user", "switch", "text", "activity"]);
  expect(talk.rows[2]).toMatchObject({ switch: { to_model: "small", from_model: "large", reason: "busy" } });
});

describe("what the model is shown less of", () => {
  const compressed = (horizon: number, fields: object = {}) => ({
    type: "context.compressed",
    stage: "summarize",
    strength: "medium",
    before_tokens: 100,
    after_tokens: 40,
    horizon,
    ...fields,
  });

  test("ends in a divider before the first message that is shown whole", () => {
    const talk = new Talk();
    talk.add(STARTED, user("u"), ANSWER, text(0, "a"), FINISHED);
    talk.add({ ...STARTED, turn: "t2" }, { ...user("v"), turn: "t2" });
    const [last] = talk.state.messages.slice(-1);
    talk.add({ ...compressed(last?.seq ?? 0), turn: "t2" });
    expect(talk.kinds).toEqual(["day", "user", "text", "compressed", "user", "activity"]);
    expect(talk.rows.map((row) => row.key)).toEqual(new RowBook(dayOf).rows(talk.state).map((row) => row.key));
  });

  test("moves with a later horizon of the same stage", () => {
    const talk = new Talk();
    talk.add(STARTED, user("u"), ANSWER, text(0, "a"), compressed(2), compressed(50));
    expect(talk.kinds).toEqual(["day", "user", "text", "compressed", "activity"]);
    expect(talk.rows[3]).toMatchObject({ range: { horizon: 50 } });
  });

  test("is not marked where nothing stands above", () => {
    const talk = new Talk();
    talk.add(STARTED, compressed(1), user("u"));
    expect(talk.kinds).toEqual(["day", "user", "activity"]);
  });
});

describe("files a turn changed", () => {
  const changed = (block: number, ...paths: string[]) => ({
    type: "files.changed",
    call: `m-k${block}`,
    files: paths.map((path) => ({ path, kind: "modified", additions: 1, deletions: 0, diff: "+a" })),
  });

  test("are summed up when it is over and they are several", () => {
    const talk = new Talk();
    talk.add(STARTED, user("u"), ANSWER, call(0, "edit"), changed(0, "a"), result(0), call(1, "edit"), changed(1, "b"), result(1));
    expect(talk.kinds).toEqual(["day", "user", "tool", "tool", "activity"]);
    talk.add(FINISHED);
    expect(talk.kinds).toEqual(["day", "user", "tool", "tool", "changes"]);
    talk.add({ ...STARTED, turn: "t2" }, { ...user("v"), turn: "t2" });
    expect(talk.kinds).toEqual(["day", "user", "tool", "tool", "changes", "user", "activity"]);
  });

  test("of a copy, which has no turns, stand with the words they were made for", () => {
    const talk = new Talk();
    const changes = ["a", "b"].map((path) => ({ path, kind: "modified" }));
    const shell = { type: "tool", index: 0, call: "k", name: "shell", status: "ok", changes };
    const answer = { type: "message.added", message: "m", role: "assistant", blocks: [shell] };
    talk.add(...[user("u"), answer, user("v")].map((event) => ({ ...event, turn: null })));
    expect(talk.kinds).toEqual(["day", "user", "tool", "changes", "user"]);
  });

  test("are summed up from the first one on", () => {
    const talk = new Talk();
    talk.add(STARTED, user("u"), ANSWER, call(0, "edit"), changed(0, "a", "a"), result(0), FINISHED);
    expect(talk.kinds).toEqual(["day", "user", "tool", "changes"]);
  });
});

test("days divide, except above the first message at hand, whose day may have begun earlier", () => {
  const talk = new Talk();
  talk.add(user("a"));
  talk.now += DAY_MS - 1;
  talk.add(user("b"));
  talk.now += 2;
  talk.add(user("c"));
  expect(talk.kinds).toEqual(["day", "user", "user", "day", "user"]);
  expect(new RowBook(dayOf).rows({ ...talk.state, offset: 5 }).map((row) => row.kind)).toEqual(["user", "user", "day", "user"]);
});

test("the activity names the tool at work and what it waits for", () => {
  const talk = new Talk();
  talk.add(STARTED, ANSWER, call(0, "shell"), { type: "tool.started", call: "m-k0", grant: "user" });
  expect(talk.rows.at(-1)).toMatchObject({ kind: "activity", tool: { name: "shell", status: "running" }, waiting: null });
  talk.add({ type: "request.opened", request: "r", kind: "approval", call: "m-k0" });
  expect(talk.rows.at(-1)).toMatchObject({ kind: "activity", waiting: "approval" });
});

test("a change anywhere gives the rows that a fresh look gives", () => {
  const talk = new Talk();
  const check = () => expect(talk.rows).toEqual(new RowBook(dayOf).rows(talk.state));
  for (let turn = 0; turn < 12; turn++) {
    const m = `m${turn}`;
    const of = (event: object) => ({ ...event, turn: `t${turn}` });
    talk.now += DAY_MS / 5;
    talk.add(of(STARTED), of(user(`u${turn}`)), of({ ...ANSWER, message: m }));
    check();
    for (const event of [thought(0, m), call(1, "read", m), call(2, "grep", m), thought(3, m), call(4, "list", m)]) {
      talk.add(of(event));
      check();
    }
    if (turn % 3 === 0) talk.add(of(text(5, "so", m)));
    talk.add(of(result(2, { ok: false }, m)));
    check();
    const cut = { type: "answer.finished", message: m, finish_reason: "stop", interrupted: turn % 2 === 0 };
    talk.add(of(cut), of(turn % 2 === 0 ? { type: "turn.interrupted", reason: "user" } : FINISHED));
    check();
  }
  talk.add({ type: "message.edited", message: "u3", content: [{ type: "text", text: "else" }] });
  check();
  talk.add({ type: "message.removed", message: "m5", index: 11 });
  check();
  talk.add(result(1, { ok: true }, "m7"));
  check();
  talk.add({ type: "message.truncated", index: 9 });
  check();
});

test("pictures of a person are part of the row, an agent's are rows", () => {
  const talk = new Talk();
  const image = { type: "image_url", image_url: { url: "/api/blobs/x" } };
  talk.add({ type: "message.added", message: "u", content: [{ type: "text", text: "look" }, image] });
  expect(talk.rows[1]).toMatchObject({ kind: "user", text: "look", images: ["/api/blobs/x"] });
});

test("an idle prompt is told as such, a task or a message of an agent stays a message", () => {
  const talk = new Talk();
  talk.add(
    { ...user("i", "Look around"), event_kind: "idle_prompt" },
    { ...user("w"), origin: { face: "agents", agent: "ann", conversation: "c2" }, exchange: "x" },
    { ...user("a", "ann answered:"), role: "event", event_kind: "agent_callback", exchange: "y" },
  );
  expect(talk.kinds).toEqual(["day", "note", "user", "note"]);
  expect(talk.rows[1]).toMatchObject({ role: "event", eventKind: "idle_prompt", text: "Look around" });
  expect(talk.rows[3]).toMatchObject({ role: "event", eventKind: "agent_callback", message: { exchange: "y" } });
});

describe("the activity", () => {
  const started = (block: number) => ({ type: "tool.started", call: `m-k${block}` });

  test("names the call that runs, not one that is still to start", () => {
    const talk = new Talk();
    talk.add(STARTED, user("u"), ANSWER, call(0, "shell"), call(1, "shell"), call(2, "shell"), started(0));
    expect(talk.rows.at(-1)).toMatchObject({ kind: "activity", tool: { call: "m-k0" } });
    talk.add(result(0));
    expect(talk.rows.at(-1), "none runs: the next").toMatchObject({ tool: { call: "m-k1" } });
  });

  test("of several that run names the one that started last", () => {
    const talk = new Talk();
    talk.add(STARTED, user("u"), ANSWER, call(0, "shell"), call(1, "shell"), started(1));
    talk.now += 1000;
    talk.add(started(0));
    expect(talk.rows.at(-1)).toMatchObject({ kind: "activity", tool: { call: "m-k0" } });
  });
});
