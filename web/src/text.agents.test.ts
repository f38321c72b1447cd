import { expect, it } from "vitest";
import { rest, words } from "./text.agents";

it("says a rest as round as it was set", () => {
  expect([30, 60, 90, 125, 3600, 7200, 5400].map(rest)).toEqual(["30 s", "1 min", "90 s", "2 min 05 s", "1 h", "2 h", "90 min"]);
});

it("says when somebody is woken, also when that moment has come", () => {
  expect([words.missions.due(40_300), words.missions.due(-500)]).toEqual(["woken in 40 s", "woken now"]);
});
