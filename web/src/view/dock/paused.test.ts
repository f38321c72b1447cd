import { expect, test } from "vitest";
import type { State, TurnSummary } from "../../protocol/events.gen";
import { isPaused, sayPaused, stoppedTurn } from "./paused";

const me = { user: "ada", client: "page-1" };
const ended = (fields: object): TurnSummary => ({ id: "t", outcome: "interrupted", stopped: "user", ...fields }) as TurnSummary;
const after = (last_turn: TurnSummary | null, turn: object | null = null) => ({ turn, last_turn }) as State;

test("a queue is paused after a stop that left something held, and whenever more than one is held", () => {
  expect([0, 1, 2].map((held) => isPaused(held, ended({})))).toEqual([false, true, true]);
  expect([0, 1, 2].map((held) => isPaused(held, null))).toEqual([false, false, true]);
});

test("a stop counts while nothing runs after it, and only a person's", () => {
  expect(stoppedTurn(after(ended({})))).toEqual(ended({}));
  expect(stoppedTurn(after(ended({}), { id: "t2" }))).toBeNull();
  expect(stoppedTurn(after(ended({ stopped: "restart" })))).toBeNull();
  expect(stoppedTurn(after(null))).toBeNull();
});

test("a paused queue says who stopped the agent", () => {
  expect(sayPaused(ended({ by: { user: "ada", client: "page-1" } }), me)).toBe("Paused: you stopped the agent.");
  expect(sayPaused(ended({}), me)).toBe("Paused: you stopped the agent.");
  expect(sayPaused(ended({ by: { user: "bob", client: "x" } }), me)).toBe("Paused: bob stopped the agent.");
  expect(sayPaused(ended({ by: { user: "ada", client: "phone" } }), me)).toBe("Paused: the agent was stopped from another client.");
  expect(sayPaused(null, me)).toBe("Held back until you let them go.");
});
