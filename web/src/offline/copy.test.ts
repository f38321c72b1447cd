import { expect, test } from "vitest";
import { EMPTY_STATE } from "../model/fold";
import type { Message } from "../protocol/events.gen";
import { abridged, ownerOf } from "./copy";

const SESSION = { user: "ada", role: "owner", roles: ["read"], server: "home", version: "1" };

test("the end of a long conversation is kept, and says how much came before", () => {
  const messages = Array.from({ length: 150 }, (_, seq) => ({ id: `m${seq}`, seq, blocks: [] }) as unknown as Message);
  const kept = abridged({ ...EMPTY_STATE, offset: 7, messages });
  expect(kept?.offset).toBe(57);
  expect(kept?.messages).toEqual(messages.slice(50));
});

test("what is too much for a browser's storage is not kept", () => {
  expect(abridged({ ...EMPTY_STATE, draft: "x".repeat(2_000_001) })).toBeNull();
});

test("another name, another server or other rights are another owner", () => {
  const owner = ownerOf(SESSION);
  expect(ownerOf({ ...SESSION, version: "2" })).toBe(owner);
  for (const change of [{ user: "bob" }, { server: "away" }, { role: "observer" }]) expect(ownerOf({ ...SESSION, ...change })).not.toBe(owner);
});
