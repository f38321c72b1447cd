import { describe, expect, test } from "vitest";
import { refusal, World } from "../../tests/world";
import type { Accepted } from "../protocol/events.gen";
import { Outbox, type OutboxEntry, type OutboxListener } from "./commands";

class Page implements OutboxListener {
  readonly history: (readonly OutboxEntry[])[] = [];
  applied: number | null = 0;
  signedOut = 0;

  onOutbox(entries: readonly OutboxEntry[]): void {
    this.history.push(entries);
  }

  onSignedOut(): void {
    this.signedOut += 1;
  }

  appliedSeq(): number | null {
    return this.applied;
  }
}

function opened(world = new World()): { world: World; page: Page; outbox: Outbox } {
  const page = new Page();
  return { world, page, outbox: new Outbox(world, page) };
}

const HELLO = { type: "send_message", content: "hello" } as const;

function statuses(outbox: Outbox): string[] {
  return outbox.current.map((entry) => entry.status);
}

test("a command carries an id of its own, is sending until answered, and accepted until its event is seen", async () => {
  const { world, outbox } = opened();
  world.api.answer = async () => ({ conversation: "c", seq: 9 });
  outbox.setConnected(true);
  const id = outbox.add("c", HELLO);
  expect(statuses(outbox)).toEqual(["sending"]);
  expect(world.api.commands).toEqual([{ conversation: "c", command: { ...HELLO, client_request_id: id } }]);
  await world.settle();
  expect(statuses(outbox)).toEqual(["accepted"]);
  outbox.progress("c", 8, new Set());
  expect(statuses(outbox)).toEqual(["accepted"]);
  outbox.progress("c", 9, new Set([id]));
  expect(outbox.current).toEqual([]);
});

test("what is typed while offline waits, and goes out in order once connected", async () => {
  const { world, outbox } = opened();
  const first = outbox.add("c", HELLO);
  const second = outbox.add("c", { type: "send_message", content: "again" });
  await world.settle();
  expect(statuses(outbox)).toEqual(["waiting", "waiting"]);
  expect(world.api.commands).toEqual([]);
  outbox.setConnected(true);
  expect(world.api.commands).toHaveLength(1);
  await world.settle();
  expect(world.api.commands.map(({ command }) => command.client_request_id)).toEqual([first, second]);
});

test("a lost answer is asked for again under the same id, until there is one", async () => {
  const { world, page, outbox } = opened();
  page.applied = null;
  let tries = 0;
  world.api.answer = async () => {
    tries += 1;
    if (tries < 4) throw tries === 1 ? new TypeError("network") : refusal(503, "unavailable", true);
    return { conversation: "c", seq: 3 };
  };
  outbox.setConnected(true);
  const id = outbox.add("c", HELLO);
  const answer = outbox.answered(id);
  await world.settle(10_000);
  expect(await answer).toEqual({ conversation: "c", seq: 3 });
  expect(new Set(world.api.commands.map(({ command }) => command.client_request_id))).toEqual(new Set([id]));
  expect(world.api.commands).toHaveLength(4);
  expect(outbox.current).toEqual([]);
});

test("a refusal is kept with its reason until retried under the same id, or discarded", async () => {
  const { world, page, outbox } = opened();
  page.applied = null;
  world.api.answer = async () => Promise.reject(refusal(413, "too_large"));
  outbox.setConnected(true);
  const id = outbox.add("c", HELLO);
  const answer = outbox.answered(id);
  await expect(answer).rejects.toMatchObject({ status: 413, error: { code: "too_large" } });
  expect(outbox.current).toMatchObject([{ id, status: "failed", error: { code: "too_large" } }]);
  await world.settle(60_000);
  expect(world.api.commands).toHaveLength(1);
  world.api.answer = async () => ({ conversation: "c", seq: 1 });
  outbox.retry(id);
  await world.settle();
  expect(world.api.commands.map(({ command }) => command.client_request_id)).toEqual([id, id]);
  expect(outbox.current).toEqual([]);

  world.api.answer = async () => Promise.reject(refusal(400, "invalid"));
  const other = outbox.add("c", HELLO);
  await world.settle();
  outbox.discard(other);
  expect(outbox.current).toEqual([]);
});

describe("order", () => {
  test("a message waits for the one before it, a stop does not", async () => {
    const { world, outbox } = opened();
    world.api.answer = () => new Promise<Accepted>(() => {});
    outbox.setConnected(true);
    outbox.add("c", HELLO);
    outbox.add("c", HELLO);
    outbox.add("c", { type: "interrupt" });
    outbox.add("d", HELLO);
    await world.settle();
    expect(world.api.commands.map(({ conversation, command }) => [conversation, command.type])).toEqual([
      ["c", "send_message"],
      ["c", "interrupt"],
      ["d", "send_message"],
    ]);
  });

  test("a message that must be tried again keeps its place", async () => {
    const { world, outbox } = opened();
    let busy = true;
    world.api.answer = async (conversation) => {
      if (busy) throw refusal(503, "busy", true);
      return { conversation, seq: 1 };
    };
    outbox.setConnected(true);
    const first = outbox.add("c", HELLO);
    const second = outbox.add("c", HELLO);
    await world.settle();
    busy = false;
    await world.settle(20_000);
    const ids = world.api.commands.map(({ command }) => command.client_request_id);
    expect(ids.at(-1)).toBe(second);
    expect(ids.slice(0, -1).every((id) => id === first)).toBe(true);
  });
});

test("an event that comes before its answer is the answer", async () => {
  const { world, page, outbox } = opened();
  world.api.answer = async () => Promise.reject(refusal(503, "unavailable", true));
  outbox.setConnected(true);
  const id = outbox.add("c", HELLO);
  const answer = outbox.answered(id);
  await world.settle(1);
  page.applied = 5;
  outbox.progress("c", 5, new Set([id]));
  expect(outbox.current).toEqual([]);
  expect(await answer).toMatchObject({ seq: 5 });
  const sent = world.api.commands.length;
  await world.settle(30_000);
  expect(world.api.commands).toHaveLength(sent);
});

test("a command of a conversation nobody looks at is done when it is accepted", async () => {
  const { world, page, outbox } = opened();
  page.applied = null;
  outbox.setConnected(true);
  outbox.add("c", HELLO);
  await world.settle();
  expect(outbox.current).toEqual([]);
});

test("signed out, a command waits and is sent after the next sign-in", async () => {
  const { world, page, outbox } = opened();
  world.api.answer = async () => Promise.reject(refusal(401, "unauthorized"));
  outbox.setConnected(true);
  const id = outbox.add("c", HELLO);
  await world.settle(60_000);
  expect(page.signedOut).toBe(1);
  expect(outbox.current).toMatchObject([{ id, status: "waiting" }]);
  expect(world.api.commands).toHaveLength(1);
  world.api.answer = async () => ({ conversation: "c", seq: 0 });
  outbox.setConnected(true);
  await world.settle();
  expect(outbox.current).toEqual([]);
});

test("a reload sends what was not answered, under the same ids, and forgets what was", async () => {
  const { world, outbox } = opened();
  world.api.answer = () => new Promise<Accepted>(() => {});
  outbox.setConnected(true);
  const id = outbox.add("c", HELLO);
  const reloaded = opened(world);
  expect(reloaded.outbox.current).toMatchObject([{ id, status: "waiting" }]);
  world.api.answer = async () => ({ conversation: "c", seq: 0 });
  reloaded.outbox.setConnected(true);
  await world.settle();
  expect(world.api.commands.map(({ command }) => command.client_request_id)).toEqual([id, id]);
  expect(opened(world).outbox.current).toEqual([]);
});

test("storage with something else in it is an empty outbox", () => {
  const world = new World();
  world.tab.set("palaver.outbox", "{not json");
  expect(opened(world).outbox.current).toEqual([]);
});
