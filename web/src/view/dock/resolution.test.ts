import { expect, test } from "vitest";
import type { Request } from "../../protocol/events.gen";
import type { Me } from "../me";
import { sayResolution } from "./resolution";

const ME: Me = { user: "ada", client: "here" };
const OFFERS = [{ label: "exactly this command", match: "git status" }, { label: "git with any arguments", match: "program:git" }];

function ended(fields: object, kind: Request["kind"] = "approval"): string {
  const by = { user: "ada", client: "here", face: "native" };
  const request = { kind, status: "answered", offers: OFFERS, resolution: { verdict: "allow", then: "continue", scope: "once", offer: 0, by, ...fields } };
  return sayResolution(request as unknown as Request, ME);
}

test("a lasting yes says what it covers", () => {
  expect(ended({})).toBe("Allowed once · by you");
  expect(ended({ scope: "project", offer: 1 })).toBe("Always allowed in this project: git with any arguments · by you");
});

test("a no says what was added to it", () => {
  expect(ended({ verdict: "deny" })).toBe("Denied · by you");
  expect(ended({ verdict: "deny", then: "stop", text: "Use the staging copy" })).toBe("Denied and stopped: Use the staging copy · by you");
});

test("a question that was skipped was not answered", () => {
  expect(ended({ verdict: "deny" }, "question")).toBe("Skipped · by you");
  expect(ended({ verdict: null }, "question")).toBe("Answered · by you");
});
