import { describe, expect, test } from "vitest";
import { eventsOf } from "../../tests/golden";
import type { Message, State } from "../protocol/events.gen";
import { type AnyEvent, readEvent } from "../protocol/guards";
import { EMPTY_STATE, fold } from "./fold";
import { olderThan, touchesUnheld, withHeldPages, withPage } from "./pages";

function message(seq: number, fields: Partial<Message> = {}): Message {
  const state = fold(EMPTY_STATE, [readEvent({ type: "message.added", seq, conversation: "c", message: `m${seq}` }) as AnyEvent]);
  return { ...(state.messages[0] as Message), ...fields };
}

function stateOf(offset: number, ...seqs: number[]): State {
  return { ...EMPTY_STATE, seq: 1_000, offset, messages: seqs.map((seq) => message(seq)) };
}

function seqs(state: State): number[] {
  return state.messages.map((known) => known.seq);
}

const items = (...of: number[]) => of.map((seq) => message(seq));

test("what is older than the first message at hand is asked for, until nothing is", () => {
  expect(olderThan(stateOf(4, 50, 60))).toBe(50);
  expect(olderThan(stateOf(0, 50))).toBeNull();
  expect(olderThan({ ...stateOf(4), seq: 9 })).toBe(10);
});

test("a page is put before what is held, and the offset counts what is still missing", () => {
  const state = withPage(stateOf(4, 50, 60), items(30, 40), 50, 2);
  expect(seqs(state)).toEqual([30, 40, 50, 60]);
  expect(state.offset).toBe(2);
});

test("a page shorter than asked for is the beginning", () => {
  const state = withPage(stateOf(4, 50), items(30, 40), 50, 3);
  expect(state.offset).toBe(0);
  expect(withPage(stateOf(4, 50), [], 50, 3)).toMatchObject({ offset: 0 });
});

test("the same page twice, or one that overlaps, adds nothing twice", () => {
  const once = withPage(stateOf(4, 50), items(30, 40), 50, 2);
  const twice = withPage(once, items(30, 40), 50, 2);
  expect(seqs(twice)).toEqual([30, 40, 50]);
  expect(twice.offset).toBe(2);
  const overlapping = withPage(once, items(20, 30), 40, 2);
  expect(seqs(overlapping)).toEqual([20, 30, 40, 50]);
  expect(overlapping.offset).toBe(1);
});

test("messages that did not change keep their identity, newer ones win, removed ones go", () => {
  const held = withPage(stateOf(6, 50), items(20, 30, 40), 50, 3);
  const fresh = [message(20), message(40, { updated_seq: 900, edited: true })];
  const state = withPage(held, fresh, 50, 2);
  expect(seqs(state)).toEqual([20, 40, 50]);
  expect(state.messages[0]).toBe(held.messages[0]);
  expect(state.messages[1]?.edited).toBe(true);
  const newer = { ...held, messages: held.messages.map((known) => ({ ...known, updated_seq: 950 })) };
  expect(withPage(newer, fresh, 50, 2).messages[1]?.edited).toBe(false);
});

describe("a snapshot over held pages", () => {
  test("keeps them when they join", () => {
    const state = withHeldPages(stateOf(5, 60, 70), { ...stateOf(2, 30, 40, 50, 60), seq: 60 });
    expect(seqs(state)).toEqual([30, 40, 50, 60, 70]);
    expect(state.offset).toBe(2);
  });

  test("drops them when messages are missing between, or fewer than thought are left", () => {
    expect(seqs(withHeldPages(stateOf(9, 80), stateOf(2, 30, 40)))).toEqual([80]);
    expect(seqs(withHeldPages(stateOf(3, 60), stateOf(2, 30, 40, 60)))).toEqual([60]);
    expect(seqs(withHeldPages(stateOf(0), stateOf(2, 30)))).toEqual([]);
  });
});

test("every cut of a golden log into snapshot and pages gives the whole again", () => {
  const whole = fold(EMPTY_STATE, eventsOf("long"));
  for (let kept = 1; kept < whole.messages.length; kept++) {
    let state: State = { ...whole, offset: whole.messages.length - kept, messages: whole.messages.slice(-kept) };
    for (let before = olderThan(state); before !== null; before = olderThan(state)) {
      const from = before;
      const page = whole.messages.filter((known) => known.seq < from).slice(-3);
      state = withPage(state, page, before, 3);
    }
    expect(state).toEqual(whole);
  }
});

describe("a page on its way is stale after", () => {
  const state = { ...stateOf(5, 50), messages: [message(50)] };
  const event = (fields: object) => readEvent({ seq: 60, conversation: "c", ...fields }) as AnyEvent;

  test.each([
    [{ type: "message.edited", message: "m20", content: [] }, true],
    [{ type: "message.edited", message: "m50", content: [] }, false],
    [{ type: "message.removed", message: "m20", index: 2 }, true],
    [{ type: "message.truncated", index: 3 }, true],
    [{ type: "message.truncated", index: 5 }, false],
    [{ type: "tool.finished", call: "k", ok: true }, true],
    [{ type: "message.added", message: "new" }, false],
    [{ type: "turn.status", status: "thinking" }, false],
  ])("%o: %s", (fields, stale) => {
    expect(touchesUnheld(state, event(fields))).toBe(stale);
  });
});
