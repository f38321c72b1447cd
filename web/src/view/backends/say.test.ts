import { expect, test } from "vitest";
import type { BackendEntry, Trial } from "../../transport/api.later";
import { abilitiesOf, adviceOf, inabilitiesOf, readyFirst, sayTrial, stateOf, summaryOf } from "./say";

const READY: BackendEntry = {
  name: "claude",
  title: "Claude Code",
  ready: true,
  installed: true,
  version: "2.1.0",
  summary: "Claude Code 2.1.0",
  fix: null,
  login: "ok",
  capabilities: { deltas: true, thinking: true, steer: false, dreams: true },
  agents: ["claude"],
  processes: 0,
  last_error: null,
};

const ANSWER: Trial = { ok: true, text: "Hello.", duration_ms: 4200, error: null };
const FAILURE: Trial = { ok: false, text: "", duration_ms: 10, error: { code: "not_logged_in", message: "Nobody is logged in to `claude`." } };

test("a backend's state is the first thing that a person would have to do about it", () => {
  const error = { message: "It broke.", ts: 1 };
  const states = [
    READY,
    { ...READY, ready: false, installed: false, login: null },
    { ...READY, ready: false, login: "missing" as const },
    { ...READY, ready: false, login: null, summary: "Claude Code 1.0 is too old." },
    { ...READY, ready: false, login: null, summary: "It has no command." },
    { ...READY, last_error: error },
    { ...READY, ready: false, login: "missing" as const, last_error: error },
  ].map((backend) => stateOf(backend));
  expect(states).toEqual(["ready", "missing", "login", "version", "unready", "ready", "login"]);
});

test("a try counts for more than what was known before", () => {
  const failing = { ...READY, last_error: { message: "It broke.", ts: 1 } };
  expect(stateOf(failing, { phase: "running", agent: "claude", since: 0 })).toBe("testing");
  expect(stateOf(failing, { phase: "done", agent: "claude", trial: ANSWER })).toBe("ready");
  expect(stateOf(READY, { phase: "done", agent: "claude", trial: FAILURE })).toBe("failing");
});

test("abilities are words, also those that this page does not know", () => {
  expect(abilitiesOf(READY)).toEqual(["streaming", "thinking", "dreams"]);
  expect(inabilitiesOf(READY)).toEqual(["steering"]);
  expect(abilitiesOf({ ...READY, capabilities: null })).toEqual([]);
});

test("a name and a version are said once", () => {
  const summaries = ["Claude Code 2.1.0", "Claude Code 2.1.0: nobody is logged in.", "Logged in."];
  expect(summaries.map((summary) => summaryOf({ ...READY, summary }))).toEqual([
    "Version 2.1.0",
    "Claude Code 2.1.0: nobody is logged in.",
    "Logged in. · Version 2.1.0",
  ]);
  expect(summaryOf({ ...READY, version: null, summary: "Ready" })).toBe("Ready");
});

test("a try is told in words, with what to do about a failure", () => {
  expect(sayTrial(ANSWER)).toBe("Answered in 4 s");
  expect(sayTrial(FAILURE)).toBe("Nobody is logged in to “claude”.");
  expect(adviceOf(FAILURE)).toContain("palaver doctor");
  expect(sayTrial({ ...FAILURE, error: null })).toBe("It gave no reason.");
  expect([adviceOf(ANSWER), adviceOf({ ...FAILURE, error: { code: "asked", message: "It asked." } })]).toEqual([null, null]);
});

test("what is ready comes first", () => {
  const missing = { ...READY, name: "pi", ready: false };
  expect(readyFirst([missing, READY, { ...missing, name: "codex" }]).map(({ name }) => name)).toEqual(["claude", "pi", "codex"]);
});
