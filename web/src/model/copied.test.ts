import { expect, test } from "vitest";
import { listing, refusal, World } from "../../tests/world";
import { ApiError } from "../transport/api";
import { EMPTY_STATE } from "./fold";
import { openStore } from "./store";

const SESSION = { user: "ada", role: "owner", roles: ["read", "send"], server: "home", version: "1.0.0" };

function unreachable(): World {
  const world = new World();
  world.api.session = () => Promise.reject(new ApiError(0, { code: "unreachable", message: "The server did not answer.", retryable: true }));
  world.copy = {
    savedAt: 5,
    session: SESSION,
    agents: [],
    rows: [listing("c", { title: "Seen" })],
    state: (id) => Promise.resolve(id === "c" ? { ...EMPTY_STATE, conversation: "c", seq: 9, title: "Seen" } : null),
  };
  return world;
}

test("without a server the copy of this device is shown, and nothing can be done to it", async () => {
  const world = unreachable();
  const store = openStore(world);
  store.start();
  store.openConversation("c");
  store.openConversation("elsewhere");
  await world.settle();
  const shown = store.getSnapshot();
  expect(shown).toMatchObject({ copiedAt: 5, session: { phase: "unreachable", session: SESSION }, list: { phase: "ready" } });
  expect([...shown.list.byId.keys()]).toEqual(["c"]);
  expect(shown.open.get("c")).toMatchObject({ phase: "ready", state: { title: "Seen", seq: 9 } });
  expect(shown.open.get("elsewhere")).toMatchObject({ phase: "failed" });
  store.command("c", { type: "update_conversation", title: "Other" });
  expect(store.getSnapshot().outbox).toEqual([]);
});

test("a server that answers again takes the copy's place, whole", async () => {
  const world = unreachable();
  world.logs.set("c", []);
  world.append("c", { type: "conversation.created", title: "As it is" });
  const store = openStore(world);
  store.start();
  store.openConversation("c");
  await world.settle();
  world.api.session = () => Promise.resolve(SESSION);
  world.api.conversations = () => Promise.resolve({ items: [listing("new", { title: "As it is" })], next_cursor: null, pos: 1 });
  store.reconnectNow();
  await world.settle();
  world.advance(200);
  await world.settle();
  const shown = store.getSnapshot();
  expect(shown).toMatchObject({ copiedAt: null, session: { phase: "signed_in" } });
  expect([...shown.list.byId.keys()]).toEqual(["new"]);
  // The snapshot, not the copy with events after it.
  expect(shown.open.get("c")?.state).toMatchObject({ title: "As it is", seq: 1 });
});

test("a server that does not know us any more takes the copy away", async () => {
  const world = unreachable();
  const store = openStore(world);
  store.start();
  store.openConversation("c");
  await world.settle();
  world.api.session = () => Promise.reject(refusal(401, "unauthorized"));
  store.reconnectNow();
  await world.settle();
  const shown = store.getSnapshot();
  expect(shown).toMatchObject({ copiedAt: null, session: { phase: "signed_out", session: null } });
  expect(shown.list.byId.size).toBe(0);
  expect(shown.open.size).toBe(0);
});

test("without a copy the door says that the server does not answer", async () => {
  const world = unreachable();
  world.copy = null;
  const store = openStore(world);
  store.start();
  await world.settle();
  expect(store.getSnapshot()).toMatchObject({ copiedAt: null, session: { phase: "unreachable", session: null } });
});
