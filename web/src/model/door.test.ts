import { describe, expect, test } from "vitest";
import { opened } from "../../tests/opened";
import { listing, refusal } from "../../tests/world";

describe("who we are", () => {
  test("signed out shows it, and a sign-in connects", async () => {
    const { world, store } = await opened((fresh) => {
      fresh.api.session = async () => Promise.reject(refusal(401, "unauthorized"));
      fresh.api.signIn = async (credentials) => {
        if ("code" in credentials) throw refusal(401, "unauthorized");
        return { user: "ada", roles: [], server: "palaver", version: "1.0.0", key: "secret" };
      };
    });
    expect(store.getSnapshot()).toMatchObject({ session: { phase: "signed_out" }, connection: { kind: "signed_out" } });
    expect(world.sockets).toHaveLength(0);
    expect(await store.signIn({ code: "wrong" })).toBe(false);
    expect(store.getSnapshot().session).toMatchObject({ phase: "signed_out", error: { code: "unauthorized" } });
    expect(world.pageKey).toBeNull();
    expect(await store.signIn({ token: "right" })).toBe(true);
    expect(world.pageKey).toBe("secret");
    expect(JSON.stringify(store.getSnapshot().session)).not.toContain("secret");
    await world.settle();
    expect(store.getSnapshot()).toMatchObject({ session: { phase: "signed_in" }, connection: { kind: "open" } });
    expect(world.sockets).toHaveLength(1);
    world.socket.drop(4401);
    expect(await store.signIn({ token: "right" })).toBe(true);
    await world.settle();
    expect(store.getSnapshot().connection.kind).toBe("open");
    expect(world.sockets).toHaveLength(2);
  });

  test("a server that does not answer is tried again", async () => {
    const { world, store } = await opened((fresh) => {
      const session = fresh.api.session;
      let tries = 0;
      fresh.api.session = async () => (++tries < 3 ? Promise.reject(new TypeError("network")) : session());
    });
    expect(store.getSnapshot().session.phase).toBe("unreachable");
    await world.settle(5_000);
    await world.settle(5_000);
    expect(store.getSnapshot().session.phase).toBe("signed_in");
  });

  test("a server that did not answer is asked at once when the page wakes", async () => {
    const { world, store } = await opened((fresh) => {
      fresh.api.session = async () => Promise.reject(new TypeError("network"));
    });
    await world.settle(30_000);
    await world.settle(0);
    world.api.session = async () => ({ user: null, roles: [], server: "palaver", version: "1.0.0" });
    world.wake("online");
    await world.settle(1);
    expect(store.getSnapshot().session.phase).toBe("signed_in");
  });

  test("a socket closed with 4401, or a handshake refused, ends the session on the page", async () => {
    const { world, store } = await opened();
    world.socket.drop(4401);
    expect(store.getSnapshot().session.phase).toBe("signed_out");

    const other = await opened();
    other.world.answers = false;
    other.world.api.session = async () => Promise.reject(refusal(401, "unauthorized"));
    other.world.socket.drop();
    await other.world.settle(2_000);
    other.world.socket.drop();
    await other.world.settle(2_000);
    expect(other.store.getSnapshot().session.phase).toBe("signed_out");
    const tried = other.world.sockets.length;
    await other.world.settle(60_000);
    expect(other.world.sockets).toHaveLength(tried);
    expect(world.pendingTimers).toBe(0);
  });

  test("signing out leaves nothing of what was read", async () => {
    const { world, store } = await opened((fresh) => {
      fresh.api.conversations = async () => ({ items: [listing("c")], next_cursor: null, pos: 5 });
    });
    store.openConversation("c");
    await world.settle();
    expect(store.getSnapshot().list.byId.size).toBe(1);
    world.answers = false;
    world.socket.drop();
    store.send("c", "not sent yet");
    store.setDraft("c", "secret");
    await store.signOut();
    expect(store.getSnapshot().outbox).toEqual([]);
    expect([...world.tab.held.keys()]).toEqual([]);
    expect(store.draft("c")).toBe("");
    expect(store.getSnapshot().open.size).toBe(0);
    expect(store.getSnapshot().list.byId.size).toBe(0);
  });
});
