import { describe, expect, test } from "vitest";
import { opened, said, view } from "../../tests/opened";
import type { World } from "../../tests/world";
import type { Message } from "../protocol/events.gen";

describe("older pages", () => {
  /** 250 messages, of which a snapshot holds the last hundred. */
  function long(world: World): Message[] {
    world.append("c", ...Array.from({ length: 250 }, (_, n) => said(`u${n}`)));
    const { messages } = world.stateOf("c");
    world.api.messages = async (_, before, limit = 100) => ({
      items: world.stateOf("c").messages.filter((message) => message.seq < before).slice(-limit),
    });
    return messages;
  }

  test("are put before what is held until the beginning, and counted for the scroll position", async () => {
    let whole: Message[] = [];
    const { world, store } = await opened((fresh) => {
      whole = long(fresh);
    });
    store.openConversation("c");
    world.advance(100);
    expect(view(store)).toMatchObject({ older: "more", prependCount: 0, state: { offset: 150 } });
    const loading = store.loadOlder("c");
    expect(view(store).older).toBe("loading");
    await loading;
    expect(view(store)).toMatchObject({ older: "more", prependCount: 1, state: { offset: 50 } });
    await store.loadOlder("c");
    expect(view(store)).toMatchObject({ older: "start", prependCount: 2, state: { offset: 0 } });
    expect(view(store).state.messages).toEqual(whole);
    await store.loadOlder("c");
    expect(view(store).prependCount).toBe(2);
  });

  test("that fail say so and can be asked for again", async () => {
    const { world, store } = await opened((fresh) => void long(fresh));
    const messages = world.api.messages;
    store.openConversation("c");
    world.advance(100);
    world.api.messages = async () => Promise.reject(new TypeError("network"));
    await store.loadOlder("c");
    expect(view(store).older).toBe("failed");
    world.api.messages = messages;
    await store.loadOlder("c");
    expect(view(store).older).toBe("more");
  });

  test("that were read before an event reached them are read again", async () => {
    const { world, store } = await opened((fresh) => void long(fresh));
    store.openConversation("c");
    world.advance(100);
    const messages = world.api.messages;
    let asked = 0;
    world.api.messages = async (id, before, limit) => {
      const page = await messages(id, before, limit);
      asked += 1;
      if (asked === 1) world.append("c", { type: "message.edited", message: "u100", content: [{ type: "text", text: "new" }] });
      return page;
    };
    await store.loadOlder("c");
    world.advance(100);
    expect(asked).toBe(2);
    expect(view(store).state).toEqual({ ...world.stateOf("c"), offset: 50, messages: world.stateOf("c").messages.slice(50) });
  });

  test("stay over a hole that a snapshot closed, and are brought up to date in quiet", async () => {
    const { world, store } = await opened((fresh) => void long(fresh));
    store.openConversation("c");
    world.advance(100);
    await store.loadOlder("c");
    world.socket.drop();
    world.append("c", { type: "message.edited", message: "u120", content: [{ type: "text", text: "new" }] });
    world.onSubscribe = (socket, conversation) => socket.say(world.snapshotLine(conversation, "behind"));
    await world.settle(2_000);
    expect(view(store).state.messages).toEqual(world.stateOf("c").messages.slice(50));
    expect(view(store).state.offset).toBe(50);
  });

  test("are loaded until a hit can be shown", async () => {
    const { world, store } = await opened((fresh) => void long(fresh));
    store.openConversation("c");
    world.advance(100);
    const { seq } = world.stateOf("c").messages[7] as Message;
    expect(await store.reveal("c", seq)).toBe("u7");
    expect(view(store).state.offset).toBe(0);
    expect(await store.reveal("c", 99_999)).toBeNull();
  });
});
