import { expect, test } from "vitest";
import { listing } from "../../../tests/world";
import type { Listing } from "../../protocol/events.gen";
import { choices, groupsOf, NO_FILTERS, stateOf, type Filters } from "./rows";

const TODAY = 1_000_000;

function row(id: string, change: Partial<Listing> = {}): Listing {
  return listing(id, { project: "/home", created_at: 1, updated_at: TODAY + 1, message_count: 1, ...change });
}

const ROWS = [
  row("rest"),
  row("old", { updated_at: 5, agent: "pi", project: "/other" }),
  row("asks", { open_requests: 1, status: "paused", turn: "t" }),
  row("works", { turn: "t", status: "generating" }),
  row("broke", { status: "error" }),
  row("away", { archived: true }),
  row("child", { parent: "works", parent_kind: "subagent" }),
  row("gone", { deleted: true }),
];

function shown(change: Partial<Filters>, asking: string[] = [], found: string[] = []): Record<string, string[]> {
  const at = { today: TODAY, asking: new Set(asking), found: new Set(found) };
  return Object.fromEntries(groupsOf(ROWS, { ...NO_FILTERS, ...change }, at).map(({ name, items }) => [name, items.map(({ id }) => id)]));
}

test("conversations stand in their groups; subagents', deleted and archived ones in none", () => {
  expect(shown({})).toEqual({ waiting: ["asks"], active: ["works"], today: ["rest", "broke"], older: ["old"] });
});

test("filters narrow by state, agent, folder and words", () => {
  expect(shown({ state: "archived" })).toEqual({ archived: ["away"] });
  expect(shown({ state: "failed" })).toEqual({ today: ["broke"] });
  expect(shown({ state: "waiting" }, ["rest"])).toEqual({ waiting: ["rest", "asks"] });
  expect(shown({ agent: "pi" })).toEqual({ older: ["old"] });
  expect(shown({ folder: "/other" })).toEqual({ older: ["old"] });
  expect(shown({ words: "WOR" })).toEqual({ active: ["works"] });
  expect(shown({ words: "nowhere said" }, [], ["old"])).toEqual({ older: ["old"] });
});

test("each row says what it is doing", () => {
  const states = ROWS.slice(0, 6).map((one) => stateOf(one, new Set()));
  expect(states).toEqual(["idle", "idle", "waiting", "running", "failed", "archived"]);
  expect(stateOf(row("x"), new Set(["x"]))).toBe("waiting");
});

test("what can be chosen is what there is, the most frequent first", () => {
  expect(choices(ROWS, ({ agent }) => agent)).toEqual(["default", "pi"]);
});
