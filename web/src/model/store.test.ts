import { describe, expect, test, vi } from "vitest";
import { linesOf } from "../../tests/golden";
import { ANSWER, delta, opened, said, STARTED, view } from "../../tests/opened";
import { refusal } from "../../tests/world";

describe("showing", () => {
  test("a conversation opens with a snapshot and grows with its events", async () => {
    const { world, store } = await opened();
    const answer = world.onSubscribe;
    world.onSubscribe = (...question) => void world.after(10, () => answer(...question));
    store.openConversation("c");
    expect(view(store).phase).toBe("loading");
    world.advance(100);
    expect(view(store)).toMatchObject({ phase: "ready", older: "start", state: { title: "Talk" } });
    world.append("c", STARTED, ANSWER, delta("Hi"));
    world.advance(100);
    expect(view(store).rows.map((row) => row.kind)).toEqual(["day", "text", "activity"]);
  });

  test("a hundred tokens a second are shown at most thirty times a second", async () => {
    const { world, store } = await opened();
    store.openConversation("c");
    world.append("c", STARTED, ANSWER);
    world.advance(1_000);
    const shown = vi.fn();
    store.subscribe(shown);
    for (let token = 0; token < 100; token++) {
      world.append("c", delta("x"));
      world.advance(10);
    }
    world.advance(100);
    expect(shown.mock.calls.length).toBeLessThanOrEqual(33);
    expect(shown.mock.calls.length).toBeGreaterThan(20);
    expect(view(store).state.messages[0]?.blocks[0]).toMatchObject({ text: "x".repeat(100) });
  });

  test("a snapshot is never changed, and what did not change is the same object", async () => {
    const { world, store } = await opened();
    world.append("c", said("u"));
    store.openConversation("c");
    world.advance(100);
    const before = store.getSnapshot();
    expect(store.getSnapshot()).toBe(before);
    const rows = view(store).rows;
    world.append("c", STARTED, ANSWER, delta("Hi"));
    world.advance(100);
    const after = store.getSnapshot();
    expect(before.open.get("c")?.rows).toBe(rows);
    expect(after.open).not.toBe(before.open);
    expect(after.list).toBe(before.list);
    expect(after.disclosure).toBe(before.disclosure);
    expect(after.open.get("c")?.rows[1]).toBe(rows[1]);
  });

  test("what the person does is shown at once", async () => {
    const { store } = await opened();
    store.openConversation("c");
    const shown = vi.fn();
    store.subscribe(shown);
    store.setDisclosed("m:0", true);
    store.select("c", "m:0");
    store.setDraft("c", "hello");
    expect(shown).toHaveBeenCalledTimes(3);
    expect(store.getSnapshot().disclosure.get("m:0")).toBe(true);
    expect(view(store)).toMatchObject({ selected: "m:0", draft: "hello" });
  });

  test("every golden log opened in the middle and followed to its end is what it is when opened at the end", async () => {
    for (const name of ["talk", "tools", "requests", "rewritten", "long"]) {
      const lines = linesOf(name);
      const { world, store } = await opened((fresh) => fresh.logs.set(name, lines.slice(0, 10)));
      store.openConversation(name);
      world.advance(100);
      world.logs.set(name, lines);
      world.socket.say(...lines.slice(8));
      world.advance(100);
      const late = await opened((fresh) => fresh.logs.set(name, lines));
      late.store.openConversation(name);
      late.world.advance(100);
      expect(view(store, name).state).toEqual(view(late.store, name).state);
      expect(view(store, name).rows).toEqual(view(late.store, name).rows);
    }
  });
});

describe("commands", () => {
  test("a message is sending, then accepted, then a row; never both", async () => {
    const { world, store } = await opened();
    store.openConversation("c");
    world.advance(100);
    world.api.answer = async (conversation) => ({ conversation, seq: 2, id: "u" });
    const id = store.send("c", "hello", { delivery: "boundary" });
    expect(view(store).outbox).toMatchObject([{ id, status: "sending", command: { content: "hello", delivery: "boundary" } }]);
    await world.settle();
    expect(view(store).outbox).toMatchObject([{ status: "accepted" }]);
    world.append("c", { ...said("u"), client_request_id: id });
    world.advance(100);
    expect(view(store).outbox).toEqual([]);
    expect(view(store).rows.at(-1)).toMatchObject({ kind: "user", text: "u" });
  });

  test("typed without a connection is sent once there is one", async () => {
    const { world, store } = await opened();
    store.openConversation("c");
    world.advance(100);
    world.answers = false;
    world.socket.drop();
    const id = store.send("c", "hello");
    await world.settle();
    expect(view(store).outbox).toMatchObject([{ id, status: "waiting" }]);
    world.answers = true;
    await world.settle(20_000);
    expect(world.api.commands.map(({ command }) => command.client_request_id)).toEqual([id]);
  });

  test("a refusal is told to whoever waits for the answer", async () => {
    const { world, store } = await opened();
    world.api.answer = async () => Promise.reject(refusal(409, "conflict"));
    const id = store.command("c", { type: "regenerate" });
    await expect(store.answered(id)).rejects.toMatchObject({ error: { code: "conflict" } });
    store.discard(id);
    expect(store.getSnapshot().outbox).toEqual([]);
  });

  test("a new conversation is asked for under one id, also after a lost answer", async () => {
    const { world, store } = await opened();
    const bodies: (string | null | undefined)[] = [];
    world.api.create = async (body) => {
      bodies.push(body.id);
      if (bodies.length === 1) throw new TypeError("network");
      return { conversation: body.id ?? "", seq: 1 };
    };
    const made = store.create({ message: "hi" });
    await world.settle(5_000);
    expect(await made).toMatchObject({ conversation: bodies[0] });
    expect(new Set(bodies).size).toBe(1);
  });
});

test("what happens in the conversation on the screen is announced, at most every two seconds of text", async () => {
  const { world, store } = await opened();
  store.openConversation("c");
  world.advance(100);
  store.setVisible("c");
  world.append("c", STARTED, ANSWER, delta("One. "));
  world.advance(100);
  const first = store.getSnapshot().announcement;
  expect(first.items).toEqual([
    { kind: "turn_started", agent: "ada" },
    { kind: "text", text: "One." },
  ]);
  world.append("c", delta("Two. "));
  world.advance(500);
  expect(store.getSnapshot().announcement).toBe(first);
  world.advance(2_000);
  expect(store.getSnapshot().announcement.items).toEqual([{ kind: "text", text: "Two." }]);
});

test("a store that is stopped leaves no timer behind", async () => {
  const { world, store } = await opened();
  store.openConversation("c");
  store.setDraft("c", "x");
  store.search("y");
  world.append("c", said("u"));
  store.stop();
  expect(world.pendingTimers).toBe(0);
});
