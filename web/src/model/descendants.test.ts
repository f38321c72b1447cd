import { expect, test } from "vitest";
import { listing } from "../../tests/world";
import type { Listing } from "../protocol/events.gen";
import { type Descendant, descendantsOf } from "./descendants";

const below = (id: string, parent: string, fields: Partial<Listing> = {}) => listing(id, { parent, parent_kind: "subagent", root: "top", ...fields });

/** "child(grandchild)" */
const said = (tree: readonly Descendant[]): string =>
  tree.map(({ row, children }) => (children.length > 0 ? `${row.id}(${said(children)})` : row.id)).join(" ");

test("subagents of subagents stand below them, in the order they began", () => {
  const rows = [below("late", "child", { created_at: 9 }), below("deep", "early"), below("early", "child", { created_at: 5 }), below("child", "top")];
  expect(said(descendantsOf("top", rows))).toBe("child(early(deep) late)");
  expect(said(descendantsOf("child", rows))).toBe("early(deep) late");
});

test("branches, exchanges and deleted conversations are no subagents", () => {
  const rows = [below("branch", "top", { parent_kind: "branch" }), below("gone", "top", { deleted: true })];
  expect(descendantsOf("top", rows)).toEqual([]);
});

test("of a row that is known twice the later one holds", () => {
  const [tree] = descendantsOf("top", [below("child", "top", { seq: 4, title: "new" })], [below("child", "top", { seq: 2, title: "old" })]);
  expect(tree?.row.title).toBe("new");
});

test("a ring ends", () => {
  expect(said(descendantsOf("a", [below("b", "a"), below("a", "b")])).length).toBeLessThan(200);
});
