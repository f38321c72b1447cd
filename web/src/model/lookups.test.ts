import { describe, expect, test } from "vitest";
import { ANSWER, delta, opened, said, STARTED } from "../../tests/opened";
import { listing, refusal, World } from "../../tests/world";
import type { Request } from "../protocol/events.gen";
import type { WaitingRequest } from "../protocol/wire";
import { ApiError } from "../transport/api";
import { openStore, type Store } from "./store";

describe("the list", () => {
  const rows = (world: World) => {
    const updated_at = world.time;
    world.api.conversations = async ({ cursor, query }) => {
      if (query) return { items: [listing("found", { title: "hidden words" })], next_cursor: null, pos: 5 };
      return cursor === "2"
        ? { items: [listing("b")], next_cursor: null, pos: 5 }
        : { items: [listing("a", { pos: 3, updated_at })], next_cursor: "2", pos: 5 };
    };
  };

  test("is loaded, goes on, follows changes and can be filtered", async () => {
    const { world, store } = await opened(rows);
    const list = () => store.getSnapshot().list;
    expect(list()).toMatchObject({ phase: "ready", hasMore: true });
    await store.loadMoreConversations();
    expect([...list().byId.keys()]).toEqual(["a", "b"]);
    world.socket.say({ type: "listed", items: [listing("b", { pos: 9, open_requests: 1 })], pos: 9 });
    world.advance(100);
    expect(list().groups.map(({ name }) => name)).toEqual(["waiting", "today"]);
    expect(list().waitingCount).toBe(1);
    store.filterConversations("words");
    expect(list()).toMatchObject({ query: "words", groups: [] });
    await world.settle(1_000);
    expect(list().groups.flatMap(({ items }) => items.map((item) => item.id))).toEqual(["found"]);
    store.filterConversations("");
    expect(list().byId.size).toBe(3);
  });

  test("is loaded again when the server says it is another, and shows those put away when asked", async () => {
    const { world, store } = await opened(rows);
    expect(world.socket.sent).toContainEqual({ type: "follow_list", after_pos: 5 });
    world.api.conversations = async ({ archived }) => ({
      items: archived ? [listing("put away", { archived: true })] : [listing("z")],
      next_cursor: null,
      pos: 2,
    });
    world.socket.say({ type: "listed", items: [], pos: 1, reset: true });
    await world.settle();
    expect([...store.getSnapshot().list.byId.keys()]).toEqual(["z"]);
    expect(world.socket.sent.at(-1)).toEqual({ type: "follow_list", after_pos: 2 });
    store.showArchived(true);
    await world.settle();
    expect(store.getSnapshot().list.groups.flatMap(({ items }) => items.map((item) => item.id))).toEqual(["z", "put away"]);
  });

  test("marks what changed elsewhere as unread until it is looked at", async () => {
    const { world, store } = await opened(rows);
    world.socket.say({ type: "listed", items: [listing("c", { pos: 9, seq: 1, updated_at: world.now() })], pos: 9 });
    world.advance(100);
    expect(store.getSnapshot().list.unread).toEqual(new Set(["c"]));
    store.openConversation("c");
    world.advance(100);
    store.setVisible("c");
    expect(store.getSnapshot().list.unread).toEqual(new Set());
    world.append("c", said("u"));
    world.socket.say({ type: "listed", items: [listing("c", { pos: 10, seq: 2 })], pos: 10 });
    world.advance(100);
    store.setVisible(null);
    expect(store.getSnapshot().list.unread).toEqual(new Set());
  });

  const leaving: Record<string, (world: World, store: Store) => void> = {
    "by going elsewhere": (_, store) => store.setVisible(null),
    "by closing the page": (world) => world.hide(),
  };
  test.each(Object.entries(leaving))("does not call unread what came just before it was left %s", async (_, leave) => {
    const { world, store } = await opened(rows);
    store.openConversation("c");
    world.advance(100);
    store.setVisible("c");
    world.append("c", said("u"));
    leave(world, store);
    const reloaded = openStore(world);
    reloaded.start();
    await world.settle();
    world.socket.say({ type: "listed", items: [listing("c", { pos: 10, seq: 2 })], pos: 10 });
    world.advance(100);
    expect(reloaded.getSnapshot().list.unread).toEqual(new Set());
  });

  test("is the same object while a conversation streams", async () => {
    const { world, store } = await opened(rows);
    store.openConversation("c");
    world.advance(100);
    store.setVisible("c");
    world.append("c", STARTED, ANSWER);
    world.advance(100);
    const { list } = store.getSnapshot();
    world.append("c", delta("x"));
    world.advance(100);
    expect(store.getSnapshot().list).toBe(list);
  });

  test("that could not be loaded is loaded a little later", async () => {
    const { world, store } = await opened((fresh) => {
      fresh.api.conversations = async () => Promise.reject(new TypeError("network"));
    });
    expect(store.getSnapshot().list.phase).toBe("failed");
    rows(world);
    await world.settle(5_000);
    expect(store.getSnapshot().list.phase).toBe("ready");
  });
});

describe("search", () => {
  test("asks after a pause, once, and the last question wins", async () => {
    const { world, store } = await opened();
    const asked: string[] = [];
    world.api.search = async ({ q }) => {
      asked.push(q);
      return [{ conversation: "c", title: "", message: "m", seq: 1, role: "user", before: "", match: q, after: "" }];
    };
    store.search("n");
    store.search("ne");
    expect(store.getSnapshot().search).toMatchObject({ phase: "typing", query: "ne" });
    await world.settle(2_000);
    expect(asked).toEqual(["ne"]);
    expect(store.getSnapshot().search).toMatchObject({ phase: "ready", hits: [{ match: "ne" }] });
    store.search("");
    expect(store.getSnapshot().search).toMatchObject({ phase: "idle", hits: [] });
  });

  test("that fails says why", async () => {
    const { world, store } = await opened();
    world.api.search = async () => Promise.reject(refusal(503, "unavailable", true));
    store.search("x");
    await world.settle(2_000);
    expect(store.getSnapshot().search).toMatchObject({ phase: "failed", error: { code: "unavailable" } });
  });
});

test("requests and agents are loaded when asked for, and requests again when the list changes", async () => {
  const { world, store } = await opened();
  let asked = 0;
  world.api.requests = async () => {
    asked += 1;
    return [];
  };
  await store.loadRequests();
  await store.loadAgents();
  expect(store.getSnapshot()).toMatchObject({ requests: { phase: "ready" }, agents: { phase: "ready" } });
  world.socket.say({ type: "listed", items: [listing("c", { pos: 8 })], pos: 8 });
  await world.settle(1_000);
  expect(asked).toBe(1);
  world.socket.say({ type: "listed", items: [listing("c", { pos: 9, open_requests: 1 })], pos: 9 });
  await world.settle(1_000);
  expect(asked).toBe(2);
});

test("requests are asked for a few times a second, however much changes, and again when that failed", async () => {
  const { world, store } = await opened();
  const item = (id: string): WaitingRequest => ({ conversation: "c", title: "", agent: "a", request: { id } as Request });
  let asked = 0;
  world.api.requests = async () => {
    asked += 1;
    if (asked === 2) throw new ApiError(503, { code: "storage_full", message: "" });
    return [item("q")];
  };
  await store.loadRequests();
  const [first] = store.getSnapshot().requests.items;
  for (let pos = 10; pos < 20; pos++) {
    world.socket.say({ type: "listed", items: [listing("c", { pos, open_requests: 1 })], pos });
    await world.settle(10);
  }
  await world.settle(300);
  expect(asked).toBe(2);
  expect(store.getSnapshot().requests).toMatchObject({ phase: "failed", items: [first] });
  await world.settle(4_000);
  expect(store.getSnapshot().requests).toMatchObject({ phase: "ready" });
  expect(store.getSnapshot().requests.items[0]).toBe(first);
  // Its end comes with a row that says nothing of requests any more.
  world.socket.say({ type: "listed", items: [listing("c", { pos: 30 })], pos: 30 });
  await world.settle(300);
  expect(asked).toBe(4);
});
