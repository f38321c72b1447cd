import { expect, test } from "vitest";
import { listing } from "../../tests/world";
import type { Listing, Request } from "../protocol/events.gen";
import type { WaitingRequest } from "../protocol/wire";
import { isBelow, renewed, waitingIn } from "./attention";

function item(conversation: string, fields: Partial<WaitingRequest> = {}): WaitingRequest {
  return { conversation, title: "", agent: "a", request: { id: `q-${conversation}` } as Request, ...fields };
}

const byId = new Map<string, Listing>(
  [
    listing("top"),
    listing("child", { parent: "top", parent_kind: "subagent", root: "top" }),
    listing("grandchild", { parent: "child", parent_kind: "subagent", root: "top" }),
    listing("branch", { parent: "top", parent_kind: "branch", root: "top" }),
  ].map((row) => [row.id, row]),
);

test("a subagent's request is its root's and everybody's between, whoever tells of it", () => {
  const asked = item("grandchild", { root: "top", parent_kind: "subagent" });
  expect(isBelow(asked, "top", new Map())).toBe(true);
  expect(isBelow(item("grandchild"), "top", byId)).toBe(true);
  expect(isBelow(asked, "child", byId)).toBe(true);
  expect(isBelow(asked, "grandchild", byId)).toBe(false);
  expect(isBelow(asked, "elsewhere", byId)).toBe(false);
});

test("a branch works for nobody", () => {
  expect(isBelow(item("branch", { root: "top", parent_kind: "branch" }), "top", byId)).toBe(false);
});

test("a circle in the list ends", () => {
  const circle = new Map([
    ["a", listing("a", { parent: "b", parent_kind: "subagent" })],
    ["b", listing("b", { parent: "a", parent_kind: "subagent" })],
  ]);
  expect(isBelow(item("a"), "c", circle)).toBe(false);
});

test("what waits in a conversation is its own and what waits below", () => {
  const items = [item("top"), item("grandchild"), item("branch")];
  expect(["top", "child", "branch", "other"].map((id) => waitingIn(items, id, byId))).toEqual([2, 1, 1, 0]);
});

test("what did not change stays the same, and the list too", () => {
  const known = [item("top"), item("child")];
  const same = renewed(known, structuredClone(known));
  expect(same).toBe(known);
  const [first] = renewed(known, [structuredClone(known[0]) as WaitingRequest]);
  expect(first).toBe(known[0]);
  expect(renewed(known, [item("top", { title: "New" }), item("child")])[0]).toMatchObject({ title: "New" });
});

test("whom a subagent works for is said with its request, whatever the list holds", () => {
  const asked = item("grandchild", { root: "top", parent_kind: "subagent", parents: ["child", "top"] });
  expect(["top", "child", "other"].map((id) => isBelow(asked, id, new Map()))).toEqual([true, true, false]);
});
