import { describe, expect, it } from "vitest";
import type { AgentShown } from "../../protocol/agents";
import { changesOf, fieldOf, formOf, hasChanges, newKey, type AgentForm } from "./form";

const REVIEWER: AgentShown = {
  id: "reviewer",
  name: "Reviewer",
  description: "Reads what others wrote",
  backend: "api",
  model: "small",
  ready: true,
  note: null,
  source: "data",
  editable: true,
  trusted: true,
  hash: "ab",
  problem: null,
  command: [],
  environment: { TOKEN: true },
  fallbacks: ["tiny"],
  system_prompt: "You read.",
  tools: ["read", "grep"],
  allowed_tools: ["read"],
  mcp_servers: [
    { name: "files", command: ["serve-files", "/my files"], environment: { KEY: true, OTHER: true }, url: null, headers: {}, trusted: false },
    { name: "web", command: [], environment: {}, url: "https://tools.example/mcp", headers: { authorization: true }, trusted: true },
  ],
  policy: [{ tool: "shell", decision: "ask", match: null }],
  mode: "plan",
  spend_limit_usd: 2.5,
  knowledge: true,
  idle_prompt: "Go on.",
  idle_interval_s: 120,
  strict_inbox: false,
  params: { temperature: 0.2 },
  given: ["name", "model", "tools", "fallbacks", "mode", "spend_limit_usd"],
};

function changed(change: (form: AgentForm) => void, agent: AgentShown | null = REVIEWER) {
  const form = formOf(agent);
  change(form);
  return changesOf(form, agent);
}

const at = <T>(items: readonly T[], place: number): T => items[place] as T;

describe("what is sent of an agent's form", () => {
  it("is nothing while nothing differs", () => {
    const changes = changed(() => undefined);
    expect(changes).toEqual({ patch: {}, wrong: {} });
    expect(hasChanges(changes, REVIEWER)).toBe(false);
    expect(hasChanges(changed(() => undefined, null), null)).toBe(false);
  });

  it("is what differs, and null for what was cleared", () => {
    const { patch } = changed((form) => {
      form.description = " Reads ";
      form.model = "";
      form.tools = "";
      form.allowed_tools = "read grep";
      form.spend_limit_usd = "3,5";
      form.idle_interval_s = "";
      form.strict_inbox = true;
      form.params["temperature"] = "";
      form.params["max_tokens"] = "500";
      form.policy = [];
    });
    expect(patch).toEqual({
      description: "Reads",
      model: null,
      tools: null,
      allowed_tools: ["read", "grep"],
      spend_limit_usd: 3.5,
      idle_interval_s: null,
      strict_inbox: true,
      params: { temperature: null, max_tokens: 500 },
      policy: null,
    });
  });

  it("empties what a built-in agent says itself instead of taking out what no file says", () => {
    const builtIn: AgentShown = { ...REVIEWER, source: "built-in", given: [] };
    const clear = (form: AgentForm): void => {
      form.tools = "";
      form.description = "";
    };
    expect(changed(clear, builtIn).patch).toEqual({ tools: [], description: "" });
    expect(changed(clear, { ...builtIn, given: ["tools", "description"] }).patch).toEqual({ tools: null, description: null });
  });

  it("never takes the model that runs now for one that was chosen", () => {
    const unnamed: AgentShown = { ...REVIEWER, given: ["name"] };
    expect(formOf(unnamed)).toMatchObject({ model: "", backend: "best" });
    expect(changed(() => undefined, unnamed).patch).toEqual({});
  });

  it("tells of secrets only those that were replaced, added or cleared", () => {
    expect(changed((form) => (at(form.environment, 0).value = "new")).patch).toEqual({ environment: { TOKEN: "new" } });
    expect(changed((form) => (form.environment = [])).patch).toEqual({ environment: { TOKEN: null } });
    expect(changed((form) => form.environment.push({ key: newKey(), name: "B", isSet: false, value: "b" })).patch).toEqual({ environment: { B: "b" } });
  });

  it("tells of a server that changed all of it, with its secrets as they are, and of the others nothing", () => {
    const { patch } = changed((form) => {
      const files = at(form.mcp_servers, 0);
      files.command = "serve-files --fast '/my files'";
      files.secrets = files.secrets.filter(({ name }) => name === "KEY");
    });
    expect(patch).toEqual({ mcp_servers: { files: { command: ["serve-files", "--fast", "/my files"], environment: { KEY: true }, trusted: false } } });
    expect(changed((form) => form.mcp_servers.pop()).patch).toEqual({ mcp_servers: { web: null } });
  });

  it("is refused by field before it is sent where nobody could use it", () => {
    const { wrong } = changed((form) => {
      form.name = " ";
      form.spend_limit_usd = "much";
      form.idle_interval_s = "1.5";
      form.command = "echo 'half";
      form.environment.push({ key: newKey(), name: "EMPTY", isSet: false, value: null });
      form.mcp_servers.push({ ...at(form.mcp_servers, 1), key: newKey() });
      form.policy.push({ key: newKey(), tool: "", match: "", decision: "ask" });
    });
    expect(wrong).toEqual({ name: "name", spend_limit_usd: "number", idle_interval_s: "whole", command: "quote", environment: "secret", policy: "rule", mcp_servers: "twice" });
  });

  it("of a new agent is what was filled in", () => {
    const { patch } = changed((form) => {
      form.name = "Gardener";
      form.system_prompt = "You dig.\n";
      form.backend = "pi";
      form.knowledge = false;
    }, null);
    expect(patch).toEqual({ name: "Gardener", system_prompt: "You dig.", backend: "pi", knowledge: false });
  });
});

it("a refusal is shown at the field that the server names, else at none", () => {
  expect(fieldOf({ message: "x", details: { field: "mcp_servers" } })).toBe("mcp_servers");
  expect(fieldOf({ message: "`mode` is one of …" })).toBe("mode");
  expect(fieldOf({ message: "The file is being changed", details: {} })).toBeNull();
});
