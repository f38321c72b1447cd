import { describe, expect, test } from "vitest";
import { eventsOf, NAMES, startOf, statesOf } from "../../tests/golden";
import type { Message, State, ToolBlock } from "../protocol/events.gen";
import { type AnyEvent, readEvent } from "../protocol/guards";
import { KEEP_OUTPUT_CHARS } from "./blocks";
import { EMPTY_STATE, fold } from "./fold";

function log(...events: Record<string, unknown>[]): AnyEvent[] {
  return events.map((event, at) => {
    const read = readEvent({ seq: at + 1, id: `e${at + 1}`, ts: 1_000 + at, conversation: "c", turn: "t", ...event });
    if (read === null) throw new Error("no event");
    return read;
  });
}

const STARTED = { type: "turn.started", agent: "a", backend: "b", trigger: { kind: "message" } };
const ANSWER = { type: "answer.started", message: "m" };
const CALL = { type: "tool.called", message: "m", block: 0, call: "k", name: "shell", input: { command: "ls" } };

function frozen<T>(value: T): T {
  if (typeof value === "object" && value !== null && !Object.isFrozen(value)) {
    Object.freeze(value);
    for (const inner of Object.values(value)) frozen(inner);
  }
  return value;
}

describe.each(NAMES)("golden log %s", (name) => {
  test("folds to its states event by event, and never changes a state it has given out", () => {
    const expected = statesOf(name);
    let state = frozen(startOf(name));
    for (const event of eventsOf(name)) {
      state = frozen(fold(state, [frozen(event)]));
      if (expected.has(state.seq)) expect(state).toStrictEqual(expected.get(state.seq));
    }
    expect(state.seq).toBe(Math.max(...expected.keys()));
  });

  test("folds to the same in batches of any size", () => {
    const events = eventsOf(name);
    const whole = fold(startOf(name), events);
    for (const size of [2, 3, 7, 50]) {
      let state = startOf(name);
      for (let at = 0; at < events.length; at += size) state = frozen(fold(state, events.slice(at, at + size)));
      expect(state).toStrictEqual(whole);
    }
  });

  test("folds to the same from a snapshot at any place", () => {
    const events = eventsOf(name);
    const whole = JSON.stringify(fold(startOf(name), events));
    let before = startOf(name);
    events.forEach((event, at) => {
      const reloaded = JSON.parse(JSON.stringify(before)) as State;
      // Texts are compared: three hundred deep comparisons of long states would take seconds.
      expect(JSON.stringify(fold(reloaded, events.slice(at))) === whole, `${name} from ${before.seq}`).toBe(true);
      before = fold(before, [event]);
    });
  });
});

test("a token replaces one message and one block, and leaves all others the objects they were", () => {
  const before = fold(
    EMPTY_STATE,
    log(
      STARTED,
      { type: "message.added", message: "u", content: [{ type: "text", text: "hello" }] },
      ANSWER,
      { type: "thinking.delta", message: "m", block: 0, text: "hm" },
      { type: "text.delta", message: "m", block: 1, text: "a" },
    ),
  );
  const after = fold(before, log({ type: "text.delta", message: "m", block: 1, text: "b", seq: 6 }));
  expect(after.messages[0]).toBe(before.messages[0]);
  expect(after.messages[1]).not.toBe(before.messages[1]);
  expect(after.messages[1]?.blocks[0]).toBe(before.messages[1]?.blocks[0]);
  expect(after.messages[1]?.blocks[1]).toMatchObject({ text: "ab", status: "streaming" });
  expect(after.turn).toBe(before.turn);
  expect(after.queue).toBe(before.queue);
});

test("an event that changes no message keeps the message array", () => {
  const before = fold(EMPTY_STATE, log(STARTED, ANSWER));
  const after = fold(before, log({ type: "turn.status", status: "thinking", seq: 3 }));
  expect(after.messages).toBe(before.messages);
});

test("no events give the state itself", () => {
  expect(fold(EMPTY_STATE, [])).toBe(EMPTY_STATE);
});

describe("live output of a tool", () => {
  function outputAfter(...texts: string[]): ToolBlock {
    const deltas = texts.map((text) => ({ type: "tool.output.delta", call: "k", text }));
    const state = fold(EMPTY_STATE, log(STARTED, ANSWER, CALL, ...deltas));
    return (state.messages[0] as Message).blocks[0] as ToolBlock;
  }

  test("is kept whole up to twice the limit, counted in code points", () => {
    const exactly = "😀".repeat(2 * KEEP_OUTPUT_CHARS);
    expect(outputAfter(exactly)).toMatchObject({ output: exactly, truncated: false });
  });

  test("is cut to the last code points one beyond it, and never inside one", () => {
    const tool = outputAfter("x", "😀".repeat(2 * KEEP_OUTPUT_CHARS));
    expect(tool.output).toBe("😀".repeat(KEEP_OUTPUT_CHARS));
    expect(tool.truncated).toBe(true);
  });

  test("counts a plain letter as one", () => {
    expect(outputAfter("a".repeat(2 * KEEP_OUTPUT_CHARS), "b").output).toBe(`${"a".repeat(KEEP_OUTPUT_CHARS - 1)}b`);
  });
});

test("a parameter called __proto__ is a parameter", () => {
  const params = JSON.parse('{"__proto__": {"polluted": true}, "gone": null}');
  const state = fold(EMPTY_STATE, log({ type: "conversation.updated", params }));
  expect(Object.getOwnPropertyNames(state.params)).toEqual(["__proto__"]);
  expect("polluted" in {}).toBe(false);
});
