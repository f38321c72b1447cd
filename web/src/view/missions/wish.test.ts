import { describe, expect, it } from "vitest";
import type { MissionView } from "../../protocol/agents";
import { fieldOf, formOf, overrideOf, plainly, wishOf } from "./wish";

const MISSION: MissionView = {
  active: true, project: "/p", stream: "project-1", mission: "m", text: "Keep it green.", created_at: 1, budget_usd: 2, spent_usd: 0, triggered: 0, limit: 100,
  status: "active",
  agents: [
    {
      agent: "builder", idle_prompt: "Of the folder.", idle_interval_s: 60, conversation: null, triggered: 0, next_due_at: 2, status: "resting",
      own: { agent: "builder", idle_interval_s: 90 },
    },
  ],
};

describe("a mission's form", () => {
  it("holds what the mission itself says, not what holds for an agent anyway", () => {
    expect(formOf(MISSION).agents).toEqual({ builder: { idle_prompt: "", idle_interval_s: "90" } });
  });

  it("becomes what the server takes", () => {
    const { wish, wrong } = wishOf({ text: " Ship. ", budget_usd: "1,5", agents: { a: { idle_prompt: "", idle_interval_s: "" }, b: { idle_prompt: "On.", idle_interval_s: "40" } } });
    expect(wrong).toEqual({});
    expect(wish).toEqual({ text: "Ship.", budget_usd: 1.5, agents: [{ agent: "a", idle_prompt: null, idle_interval_s: null }, { agent: "b", idle_prompt: "On.", idle_interval_s: 40 }] });
  });

  it("says at each field what cannot be sent", () => {
    const { wrong } = wishOf({ text: " ", budget_usd: "much", agents: { a: { idle_prompt: "", idle_interval_s: "1.5" } } });
    expect(wrong).toEqual({ text: "say", budget_usd: "number", "a.idle_interval_s": "whole" });
  });
});

it("a refusal finds the agent it is about", () => {
  const form = formOf(MISSION);
  expect(fieldOf("`agents[0].idle_prompt`: say something", form)).toBe("builder.idle_prompt");
  expect(fieldOf("`budget_usd`: must be more", form)).toBe("budget_usd");
  expect(fieldOf("`agents`: a mission may have 32 agents.", form)).toBeNull();
  expect(plainly("`text`: say what the mission is.")).toBe("Say what the mission is.");
});

it("an override sends what differs, and null for what is taken back", () => {
  const before = { project: "/p", agent: "a", idle_prompt: "Go.", idle_interval_s: null };
  expect(overrideOf({ idle_prompt: "", idle_interval_s: "45" }, before)).toEqual({ patch: { idle_prompt: null, idle_interval_s: 45 }, wrong: null });
  expect(overrideOf({ idle_prompt: "Go. ", idle_interval_s: "" }, before).patch).toEqual({});
  expect(overrideOf({ idle_prompt: "Go.", idle_interval_s: "soon" }, before).wrong).toBe("number");
});
