import { expect, test } from "vitest";
import type { BackendEntry, Trial } from "../../transport/api.later";
import { abilitiesOf, adviceOf, readyFirst, factsOf, inabilitiesOf, sayTrial, stateOf } from "./say";

const READY: BackendEntry = {
  name: "claude",
  title: "Claude Code",
  ready: true,
  installed: true,
  version: "2.1.0",
  summary: "Claude Code 2.1.0",
  fix: null,
  login: true,
  capabilities: { deltas: true, thinking: true, steer: false, dreams: true },
  agents: ["claude"],
  processes: 0,
  last_error: null,
};

const ANSWER: Trial = { ok: true, text: "Hello.", duration_ms: 4200, error: null };
const FAILURE: Trial = { ok: false, text: null, duration_ms: 10, error: { code: "not_logged_in", message: "Nobody is logged in to `claude`." } };

test("a backend's state is the first thing that a person would have to do about it", () => {
  const error = { message: "It broke.", ts: 1 };
  const states = [
    READY,
    { ...READY, ready: false, installed: false, login: false },
    { ...READY, ready: false, login: false },
    { ...READY, ready: false, login: null, summary: "Claude Code 1.0 is too old." },
    { ...READY, ready: false, login: null, summary: "It has no command." },
    { ...READY, last_error: error },
    { ...READY, ready: false, login: false, last_error: error },
  ].map((backend) => stateOf(backend));
  expect(states).toEqual(["ready", "missing", "login", "version", "unready", "failing", "login"]);
});

test("a try counts for more than what was known before", () => {
  const failing = { ...READY, last_error: { message: "It broke.", ts: 1 } };
  expect(stateOf(failing, { phase: "running", agent: "claude", since: 0 })).toBe("testing");
  expect(stateOf(failing, { phase: "done", agent: "claude", trial: ANSWER })).toBe("ready");
  expect(stateOf(READY, { phase: "done", agent: "claude", trial: FAILURE })).toBe("failing");
});

test("abilities are words, also those that this page does not know", () => {
  expect(abilitiesOf(READY)).toEqual(["answers as it writes", "shows its thinking", "dreams"]);
  expect(inabilitiesOf(READY)).toEqual(["can be steered"]);
  expect(abilitiesOf({ ...READY, capabilities: null })).toEqual([]);
});

test("a version is said once", () => {
  expect([factsOf(READY), factsOf({ ...READY, summary: "Ready." })]).toEqual(["", "Version 2.1.0"]);
});

test("a try is told in words, with what to do about a failure", () => {
  expect(sayTrial(ANSWER)).toBe("Answered in 4 s");
  expect(sayTrial(FAILURE)).toBe("Nobody is logged in to “claude”.");
  expect(adviceOf(FAILURE)).toContain("palaver doctor");
  expect(sayTrial({ ...FAILURE, error: "It broke." })).toBe("It broke.");
  expect(sayTrial({ ...FAILURE, error: null })).toBe("It gave no reason.");
  expect([adviceOf(ANSWER), adviceOf({ ...FAILURE, error: "It broke." })]).toEqual([null, null]);
});

test("what is ready comes first", () => {
  const missing = { ...READY, name: "pi", ready: false };
  expect(readyFirst([missing, READY, { ...missing, name: "codex" }]).map(({ name }) => name)).toEqual(["claude", "pi", "codex"]);
});
