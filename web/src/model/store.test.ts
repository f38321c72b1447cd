import { describe, expect, test, vi } from "vitest";
import { linesOf } from "../../tests/golden";
import { listing, refusal, World } from "../../tests/world";
import type { Message, Request } from "../protocol/events.gen";
import type { WaitingRequest } from "../protocol/wire";
import { ApiError } from "../transport/api";
// Loaded here so that the store finds them at once: tests do not wait for a bundler.
import "./announce";
import "./lines";
import "./markdown";
import { openStore, type OpenConversation, type Store } from "./store";

const STARTED = { type: "turn.started", turn: "t", agent: "ada", backend: "b", trigger: { kind: "message" } };
const ANSWER = { type: "answer.started", turn: "t", message: "m" };
const delta = (text: string) => ({ type: "text.delta", turn: "t", message: "m", block: 0, text });
const said = (message: string) => ({ type: "message.added", message, content: [{ type: "text", text: message }] });

async function opened(prepare: (world: World) => void = () => {}): Promise<{ world: World; store: Store }> {
  const world = new World();
  world.logs.set("c", []);
  world.append("c", { type: "conversation.created", title: "Talk" });
  prepare(world);
  const store = openStore(world);
  store.start();
  await world.settle();
  return { world, store };
}

function view(store: Store, id = "c"): OpenConversation {
  const open = store.getSnapshot().open.get(id);
  if (open === undefined) throw new Error(`${id} is not open`);
  return open;
}

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

describe("who we are", () => {
  test("signed out shows it, and a sign-in connects", async () => {
    const { world, store } = await opened((fresh) => {
      fresh.api.session = async () => Promise.reject(refusal(401, "unauthorized"));
      fresh.api.signIn = async (credentials) => {
        if ("code" in credentials) throw refusal(401, "unauthorized");
        return { user: "ada", roles: [], server: "palaver", version: "1.0.0" };
      };
    });
    expect(store.getSnapshot()).toMatchObject({ session: { phase: "signed_out" }, connection: { kind: "signed_out" } });
    expect(world.sockets).toHaveLength(0);
    expect(await store.signIn({ code: "wrong" })).toBe(false);
    expect(store.getSnapshot().session).toMatchObject({ phase: "signed_out", error: { code: "unauthorized" } });
    expect(await store.signIn({ token: "right" })).toBe(true);
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

describe("the list", () => {
  const rows = (world: World) => {
    world.api.conversations = async ({ cursor, query }) => {
      if (query) return { items: [listing("found", { title: "hidden words" })], next_cursor: null, pos: 5 };
      return cursor === "2"
        ? { items: [listing("b")], next_cursor: null, pos: 5 }
        : { items: [listing("a", { pos: 3, updated_at: world.time })], next_cursor: "2", pos: 5 };
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
    world.socket.say({ type: "listed", items: [listing("c", { pos: 9, seq: 1 })], pos: 9 });
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

test("a store that is stopped leaves no timer behind", async () => {
  const { world, store } = await opened();
  store.openConversation("c");
  store.setDraft("c", "x");
  store.search("y");
  world.append("c", said("u"));
  store.stop();
  expect(world.pendingTimers).toBe(0);
});
