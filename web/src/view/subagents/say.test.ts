import { expect, test } from "vitest";
import type { Subagent } from "../../protocol/events.gen";
import { firstLine, sayState, sayTogether, stateOf } from "./say";

const CHILD: Subagent = {
  conversation: "c2",
  agent: "explorer",
  task: "Look around",
  call: "k",
  status: "running",
  run: "t2",
  turn: "t1",
  started_at: 1_000,
  finished_at: null,
  cost_usd: null,
};

test("a subagent starts, works, waits for a person, and ends in one of three ways", () => {
  expect(stateOf({ ...CHILD, run: null }, 0)).toBe("starting");
  expect(sayState(CHILD, 0)).toBe("working");
  expect(sayState(CHILD, 1)).toBe("waits for you");
  expect(sayState({ ...CHILD, status: "completed", finished_at: 13_000, cost_usd: 0.021 }, 0)).toBe("done · 12 s · $0.02");
  expect(sayState({ ...CHILD, status: "failed", finished_at: 1_400 }, 1)).toBe("failed · 0.4 s");
  expect(sayState({ ...CHILD, status: "cancelled", started_at: null }, 0)).toBe("stopped");
});

test("several are said in one line", () => {
  expect(sayTogether(3, 0)).toBe("3 subagents at work");
  expect([sayTogether(3, 1), sayTogether(3, 2)]).toEqual(["3 subagents at work · 1 waits for you", "3 subagents at work · 2 wait for you"]);
});

test("a task is known by its first line that says something", () => {
  expect(firstLine("\n  \n Look around \nand tell")).toBe("Look around");
  expect(firstLine("")).toBe("");
});
