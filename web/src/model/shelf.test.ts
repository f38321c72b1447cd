import { describe, expect, test } from "vitest";
import { ANSWER, delta, opened, said, STARTED, view } from "../../tests/opened";
import { World } from "../../tests/world";
import { openStore } from "./store";

describe("opening and closing", () => {
  test("a conversation is loading until its texts can be rendered, and then shows them", async () => {
    const world = new World();
    world.append("c", STARTED, ANSWER, delta("**Hi**"));
    const store = openStore(world);
    store.openConversation("c");
    expect(view(store).phase).toBe("loading");
    store.start();
    await world.settle();
    expect(view(store).phase).toBe("ready");
    expect(view(store).markdown.render("m:0", "**Hi**", true)).toMatchObject([{ html: "<p><strong>Hi</strong></p>\n" }]);
    expect(view(store).markdown).toBe(view(store).markdown);
  });

  test("a conversation that is not there is missing, one that was deleted too", async () => {
    const { world, store } = await opened();
    store.openConversation("nowhere");
    world.advance(100);
    expect(view(store, "nowhere")).toMatchObject({ phase: "missing", error: { code: "not_found" } });
    store.openConversation("c");
    world.advance(100);
    world.append("c", { type: "conversation.deleted" });
    world.advance(100);
    expect(view(store).phase).toBe("missing");
  });

  test("one refused for a reason that may pass is asked for again", async () => {
    const { world, store } = await opened();
    world.onSubscribe = (socket, conversation) => socket.say({ type: "error", code: "busy", message: "Too many.", conversation });
    store.openConversation("c");
    world.advance(100);
    expect(view(store)).toMatchObject({ phase: "failed", error: { code: "busy" } });
    world.onSubscribe = (...question) => world.replay(...question);
    world.advance(5_000);
    expect(view(store)).toMatchObject({ phase: "ready", error: null });
  });

  test("is counted, and a reopened one goes on from what is held", async () => {
    const { world, store } = await opened();
    store.openConversation("c");
    store.openConversation("c");
    world.advance(100);
    store.closeConversation("c");
    expect(store.getSnapshot().open.has("c")).toBe(true);
    store.closeConversation("c");
    expect(store.getSnapshot().open.has("c")).toBe(false);
    world.advance(10_000);
    expect(world.socket.sent.at(-1)).toEqual({ type: "unsubscribe", conversation: "c" });
    world.append("c", said("u"));
    store.openConversation("c");
    expect(world.socket.sent.at(-1)).toEqual({ type: "subscribe", conversation: "c", after: 1 });
    world.advance(100);
    expect(view(store).state.seq).toBe(2);
  });

  test("ten conversations one after another leave a bounded number behind", async () => {
    const { world, store } = await opened();
    for (let n = 0; n < 10; n++) {
      world.append(`c${n}`, { type: "conversation.created" });
      store.openConversation(`c${n}`);
      world.advance(100);
      store.closeConversation(`c${n}`);
      world.advance(10_000);
    }
    store.openConversation("c0");
    expect(world.socket.sent.at(-1)).toEqual({ type: "subscribe", conversation: "c0" });
    store.openConversation("c9");
    expect(world.socket.sent.at(-1)).toEqual({ type: "subscribe", conversation: "c9", after: 1 });
  });
});
