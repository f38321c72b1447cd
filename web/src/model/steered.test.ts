import { expect, it } from "vitest";
import type { Message } from "../protocol/events.gen";
import { isSteered } from "./steered";

function message(role: Message["role"], turn: string | null): Message {
  return { role, turn } as Message;
}

it("a message is steered where the turn it belongs to had spoken before it", () => {
  const first = message("user", "t1");
  const second = message("user", "t1");
  const steering = message("user", "t1");
  const also = message("user", "t1");
  const next = message("user", "t2");
  const all = [message("assistant", "t0"), first, second, message("assistant", "t1"), steering, also, message("assistant", "t1"), next];
  expect([first, second, steering, also, next].map((one) => isSteered(all, one))).toEqual([false, false, true, true, false]);
});

it("a message whose beginning is not held yet is told once it is", () => {
  const steering = message("user", "t1");
  const answer = message("assistant", "t1");
  expect(isSteered([steering, answer], steering)).toBe(false);
  expect(isSteered([message("user", "t1"), answer, steering], steering)).toBe(true);
});

it("nothing that began no turn is steered", () => {
  const imported = message("user", null);
  expect(isSteered([message("assistant", null), imported], imported)).toBe(false);
});
