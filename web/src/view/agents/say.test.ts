import { expect, it } from "vitest";
import type { Listed } from "../../protocol/agents";
import { bySource, shortHash, stateOf } from "./say";

const AGENT: Listed = {
  id: "a", name: "A", description: "", backend: "api", model: null, ready: true, note: null,
  source: "data", editable: true, trusted: true, hash: "ab", problem: null,
};
const THEIRS: Listed = { ...AGENT, id: "b", source: "project", trusted: false, ready: false, problem: "Its file is not trusted." };

it("tells apart what is missing: a login, a mended file, trust", () => {
  const broken: Listed = { ...THEIRS, backend: "none", problem: "`mode` is one of …" };
  const all = [AGENT, THEIRS, broken];
  expect(stateOf(AGENT, all)).toBe("ready");
  expect(stateOf({ ...AGENT, ready: false }, all)).toBe("unready");
  expect(stateOf({ ...AGENT, problem: "no YAML", ready: false }, all)).toBe("broken");
  expect(stateOf(THEIRS, all)).toBe("untrusted");
  expect(stateOf(broken, all)).toBe("broken");
});

it("never offers to trust a file whose id is another's", () => {
  const shadowed: Listed = { ...THEIRS, id: "a" };
  expect(stateOf(shadowed, [AGENT, shadowed])).toBe("broken");
});

it("keeps the order within each source", () => {
  expect(bySource([AGENT, THEIRS, { ...AGENT, id: "c" }])).toMatchObject({ data: [{ id: "a" }, { id: "c" }], "built-in": [], project: [{ id: "b" }] });
  expect(shortHash("0123456789abcdef")).toBe("0123456789ab");
});
