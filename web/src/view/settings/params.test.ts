import { expect, test } from "vitest";
import { changesOf, fieldOf, formOf, modelsOf } from "./params";

test("only what changed is sent, and an emptied field is cleared", () => {
  const params = { temperature: 0.5, max_tokens: 100, model: "large", mode: "plan" };
  const form = { ...formOf(params), temperature: "0,7", max_tokens: "", model: " small " };
  expect(changesOf(form, params)).toEqual({ patch: { temperature: 0.7, max_tokens: null, model: "small" }, wrong: [] });
  expect(changesOf(formOf(params), params)).toEqual({ patch: {}, wrong: [] });
});

test("what is no number is said before anything is sent", () => {
  expect(changesOf({ ...formOf({}), max_tokens: "many" }, {})).toEqual({ patch: {}, wrong: ["max_tokens"] });
});

test("knowledge is on unless it was turned off", () => {
  expect(formOf({}).knowledge).toBe(true);
  expect(changesOf({ ...formOf({}), knowledge: false }, {}).patch).toEqual({ knowledge: false });
  expect(changesOf({ ...formOf({ knowledge: false }), knowledge: true }, { knowledge: false }).patch).toEqual({ knowledge: null });
});

test("a refusal is about the field it names", () => {
  expect(fieldOf({ message: "x", details: { param: "temperature" } })).toBe("temperature");
  expect(fieldOf({ message: "`model` must be a text that is not empty." })).toBe("model");
  expect(fieldOf({ message: "`mode` is wrong." })).toBeNull();
});

test("models are offered once each, those in use first", () => {
  expect(modelsOf(["b", null], [{ model: "a" }, { model: "b" }, { model: null }])).toEqual(["b", "a"]);
});
