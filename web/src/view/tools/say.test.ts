import { expect, test } from "vitest";
import type { ToolBlock } from "../../protocol/events.gen";
import * as lines from "../../model/lines";
import { compareWith } from "../../model/stat";
import { objectOf, sayGroup, sayTool } from "./say";

function call(name: string, input: unknown, fields: Partial<ToolBlock> = {}): ToolBlock {
  const known = {
    type: "tool",
    index: 0,
    call: "c1",
    name,
    status: "ok",
    input,
    input_text: "",
    output: "",
    error: null,
    truncated: false,
    blob: null,
    total_lines: null,
    total_bytes: null,
    exit_code: null,
    request: null,
    grant: null,
    provider: null,
    started_at: 1,
    changes: [],
    finished_at: 2,
    ...fields,
  };
  return known as unknown as ToolBlock;
}

test("a call is said as verb, object and result", () => {
  const line = sayTool(call("read", { path: "src/app.py" }, { output: "a\nb\nc\n" }));
  expect([line.verb, line.object, line.result]).toEqual(["Read", "src/app.py", "3 lines"]);
});

test("only what ran is said to have run", () => {
  const input = { command: "make" };
  expect(sayTool(call("shell", input, { status: "running", finished_at: null })).verb).toBe("Running");
  expect(sayTool(call("shell", input, { status: "waiting", started_at: null })).verb).toBe("Run");
  expect(sayTool(call("shell", input, { status: "denied", started_at: null })).verb).toBe("Run");
  expect(sayTool(call("shell", input, { status: "interrupted", started_at: null })).verb).toBe("Run");
  expect(sayTool(call("shell", input, { status: "interrupted" })).verb).toBe("Ran");
});

test("a failed command shows its exit code, another failure its first line", () => {
  expect(sayTool(call("shell", { command: "false" }, { status: "error", exit_code: 1 })).result).toBe("exit 1");
  expect(sayTool(call("shell", { command: "make" }, { status: "error", exit_code: -9 })).result).toBe("killed by signal 9");
  const error = { code: "tool_error", message: "There is no such file.\nTry another." };
  expect(sayTool(call("read", { path: "x" }, { status: "error", error })).result).toBe("failed · There is no such file. …");
});

test("a question that was skipped or not come to is no failure", () => {
  const error = { code: "no_answer", message: "The person declined to answer: no answer. Assume none." };
  const asked = { questions: [{ question: "Which tide?" }] };
  expect(sayTool(call("ask_user", asked, { status: "error", error })).result).toBe("not answered");
  expect(sayTool(call("AskUserQuestion", asked, { status: "denied", error: null })).result).toBe("not answered");
  const broken = { code: "tool_error", message: "No question." };
  expect(sayTool(call("ask_user", asked, { status: "error", error: broken })).result).toBe("failed · No question.");
});

test("hidden characters in a command are visible in its line", () => {
  expect(sayTool(call("shell", { command: "rm \u202etxt.exe" })).object).toBe("rm ⟨202E⟩txt.exe");
});

test("an edit counts its lines once comparing them is loaded", () => {
  compareWith(lines);
  expect(sayTool(call("edit", { path: "a.py", old: "x\ny\n", new: "x\nz\nw\n" })).result).toBe("+2 −1");
});

test("arguments that stream in already tell the object", () => {
  expect(objectOf("shell", null, '{"command": "pytest -q')).toBe("pytest -q");
});

test("arguments of any shape never break a line", () => {
  for (const input of [null, undefined, 3, "text", [], { path: 7 }, { command: null }]) {
    for (const name of ["read", "shell", "edit", "patch", "ask_user", "no such tool"]) {
      expect(() => sayTool(call(name, input))).not.toThrow();
    }
  }
});

test("a group counts distinct files and surfaces failures", () => {
  const tools = [
    call("read", { path: "a" }),
    call("read", { path: "a" }),
    call("read", { path: "b" }, { status: "error" }),
    call("grep", { pattern: "x" }),
    call("list", { path: "." }),
  ];
  expect(sayGroup(tools)).toEqual({ verb: "Explored", what: "2 files, 1 search, 1 listing", failed: 1, live: false });
  expect(sayGroup([call("read", { path: "a" }, { status: "running" })]).verb).toBe("Exploring");
});
