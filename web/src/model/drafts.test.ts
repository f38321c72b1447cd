import { describe, expect, test } from "vitest";
import { opened, view } from "../../tests/opened";
import { openStore } from "./store";

describe("drafts", () => {
  test("are kept over a reload and told to the server after a pause", async () => {
    const { world, store } = await opened();
    store.openConversation("c");
    world.advance(100);
    store.setDraft("c", "half a");
    store.setDraft("c", "half a thought");
    await world.settle(1_000);
    expect(world.api.commands).toEqual([]);
    const reloaded = openStore(world);
    expect(reloaded.draft("c")).toBe("half a thought");
    await world.settle(2_000);
    expect(world.api.commands.map(({ command }) => command)).toMatchObject([{ type: "set_draft", text: "half a thought" }]);
  });

  test("left on another device are shown, unless something was typed here", async () => {
    const { world, store } = await opened();
    store.openConversation("c");
    world.append("c", { type: "draft.set", text: "from the phone" });
    world.advance(100);
    expect(view(store).draft).toBe("from the phone");
    store.setDraft("c", "from here");
    world.append("c", { type: "draft.set", text: "from the phone again" });
    world.advance(100);
    expect(view(store).draft).toBe("from here");
    world.append("c", { type: "draft.set", text: "from here" });
    world.append("c", { type: "draft.cleared" });
    world.advance(100);
    expect(view(store).draft).toBe("from here");
  });

  test("that the server holds give way to what it holds next", async () => {
    const { world, store } = await opened();
    store.openConversation("c");
    world.advance(100);
    store.setDraft("c", "mine");
    world.append("c", { type: "draft.set", text: "mine" });
    world.advance(100);
    world.append("c", { type: "draft.cleared" });
    world.advance(100);
    expect(view(store).draft).toBe("");
  });
});
