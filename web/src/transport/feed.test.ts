import { describe, expect, test } from "vitest";
import { linesOf, statesOf } from "../../tests/golden";
import { seqOf, World } from "../../tests/world";
import { EMPTY_STATE, fold } from "../model/fold";
import type { Listing, State, WireError } from "../protocol/events.gen";
import type { AnyEvent } from "../protocol/guards";
import type { Connection } from "./connection";
import { Feed, type FeedListener } from "./feed";

/** Folds what the feed passes on, and remembers what it said. */
class Reader implements FeedListener {
  readonly states = new Map<string, State>();
  readonly seqs: number[] = [];
  readonly connections: Connection[] = [];
  readonly refused: [string, WireError][] = [];
  readonly listed: Listing[] = [];
  snapshots = 0;
  unanswered = 0;
  ready = 0;
  caughtUp = 0;
  resets = 0;

  get kinds(): string[] {
    return this.connections.map((connection) => connection.kind);
  }

  state(id: string): State {
    return this.states.get(id) ?? EMPTY_STATE;
  }

  onConnection(connection: Connection): void {
    this.connections.push(connection);
  }

  onReady(): void {
    this.ready += 1;
  }

  onEvents(id: string, events: AnyEvent[]): void {
    for (const event of events) this.seqs.push(event.seq);
    this.states.set(id, fold(this.state(id), events));
  }

  onSnapshot(id: string, state: State): void {
    this.snapshots += 1;
    this.states.set(id, state);
  }

  onCaughtUp(): void {
    this.caughtUp += 1;
  }

  onListed(items: Listing[]): void {
    this.listed.push(...items);
  }

  onListReset(): void {
    this.resets += 1;
  }

  onRefused(id: string, error: WireError): void {
    this.refused.push([id, error]);
  }

  onUnanswered(): void {
    this.unanswered += 1;
  }
}

function opened(log: string[] = []): { world: World; reader: Reader; feed: Feed } {
  const world = new World();
  const reader = new Reader();
  const feed = new Feed(world, reader);
  world.logs.set("long", log);
  return { world, reader, feed };
}

const LONG = linesOf("long");
const SEQS = LONG.map(seqOf);
const LONG_END = statesOf("long").get(SEQS.at(-1) as number) as State;

describe("the long golden log, with the socket dropped", () => {
  test("after every single event, with duplicates and late lines out of order, folds to its one state", () => {
    const { world, reader, feed } = opened(LONG);
    let sent = 0;
    world.onSubscribe = (socket, conversation, after = 0) => {
      // What was seen before comes again, then a line from further on and one out of order, then the next: then it breaks.
      const seen = LONG.filter((line) => seqOf(line) <= after).slice(-3);
      const ahead = LONG.filter((line) => seqOf(line) > after);
      socket.say(...seen.reverse());
      if (sent % 2 === 1) socket.say(...ahead.slice(2, 4).reverse());
      if (ahead[0] !== undefined) socket.say(ahead[0], ahead[0]);
      else socket.say({ type: "caught_up", conversation, seq: after });
      sent += 1;
      if (ahead.length > 0) world.after(0, () => socket.drop());
    };
    feed.follow("long", 0);
    feed.start();
    for (let round = 0; round < 2 * LONG.length; round++) world.advance(10_000);
    expect(reader.seqs).toEqual(SEQS);
    expect(reader.state("long")).toEqual(LONG_END);
    expect(reader.connections.at(-1)?.kind).toBe("open");
  });

  test("once, at any event, continues at the next one", () => {
    for (const at of SEQS) {
      const { world, reader, feed } = opened(LONG);
      let broken = false;
      world.onSubscribe = (socket, conversation, after) => {
        if (broken) {
          world.replay(socket, conversation, Math.max(0, (after ?? 0) - 2));
          return;
        }
        broken = true;
        socket.say(...LONG.slice(0, at));
        world.after(0, () => socket.drop());
      };
      feed.follow("long", 0);
      feed.start();
      world.advance(5_000);
      expect(reader.seqs, `dropped at ${at}`).toEqual(SEQS);
      expect(reader.state("long"), `dropped at ${at}`).toEqual(LONG_END);
      expect(world.socket.sent).toContainEqual({ type: "subscribe", conversation: "long", after: at });
    }
  });
});

describe("order", () => {
  test("what is known already is ignored", () => {
    const { world, reader, feed } = opened(LONG.slice(0, 5));
    feed.follow("long", 0);
    feed.start();
    world.advance(1);
    world.socket.say(...LONG.slice(0, 5), ...LONG.slice(0, 2));
    expect(reader.seqs).toEqual([1, 2, 3, 4, 5]);
  });

  test("a hole is asked for again, once, and what follows waits for it", () => {
    const { world, reader, feed } = opened(LONG.slice(0, 5));
    feed.follow("long", 0);
    feed.start();
    world.advance(1);
    world.onSubscribe = () => {};
    const before = world.socket.sent.length;
    world.socket.say(LONG[6] as string, LONG[7] as string);
    expect(reader.seqs).toEqual([1, 2, 3, 4, 5]);
    expect(world.socket.sent.slice(before)).toEqual([{ type: "subscribe", conversation: "long", after: 5 }]);
    world.socket.say(...LONG.slice(5, 9));
    expect(reader.seqs).toEqual([1, 2, 3, 4, 5, 6, 7, 8, 9]);
  });

  test("dropped fragments are no hole when what stands for them begins at the cursor or before", () => {
    const { world, reader, feed } = opened([]);
    feed.follow("long", 5);
    feed.start();
    world.advance(1);
    const compacted = { type: "log.compacted", seq: 9, id: "e", ts: 1, conversation: "long", chain: "x" };
    world.onSubscribe = () => {};
    const before = world.socket.sent.length;
    world.socket.say({ ...compacted, first: 7 });
    expect(reader.seqs).toEqual([]);
    expect(world.socket.sent.slice(before)).toHaveLength(1);
    world.socket.say({ ...compacted, first: 6 });
    world.socket.say({ ...compacted, first: 3, seq: 12 });
    expect(reader.seqs).toEqual([9, 12]);
  });

  test("replay that ends below its own head ends in a snapshot, not in silence", () => {
    const { world, reader, feed } = opened(LONG);
    let asked = 0;
    world.onSubscribe = (socket, conversation, after) => {
      asked += 1;
      if (after === undefined) world.replay(socket, conversation, after);
      else socket.say({ type: "caught_up", conversation, seq: LONG.length });
    };
    feed.follow("long", 3);
    feed.start();
    world.advance(1);
    expect(asked).toBe(2);
    expect(reader.snapshots).toBe(1);
    expect(reader.state("long").seq).toBe(LONG_END.seq);
  });

  test("events of conversations nobody follows, and of ones left meanwhile, go nowhere", () => {
    const { world, reader, feed } = opened(LONG.slice(0, 3));
    feed.follow("long", 0);
    feed.start();
    world.advance(1);
    feed.unfollow("long");
    expect(world.socket.sent.at(-1)).toEqual({ type: "unsubscribe", conversation: "long" });
    world.socket.say(...LONG.slice(3, 6));
    expect(reader.seqs).toEqual([1, 2, 3]);
  });
});

describe("snapshots", () => {
  test("come when nothing is held, and events continue behind them", () => {
    const { world, reader, feed } = opened(LONG.slice(0, 50));
    feed.follow("long", null);
    feed.start();
    world.advance(1);
    world.socket.say(...LONG.slice(48, 52));
    expect(reader.snapshots).toBe(1);
    expect(reader.seqs).toEqual([51, 52]);
  });

  test("that are older than what is held are passed over", () => {
    const { world, reader, feed } = opened(LONG.slice(0, 50));
    feed.follow("long", 0);
    feed.start();
    world.advance(1);
    world.logs.set("long", LONG.slice(0, 20));
    world.socket.say(world.snapshotLine("long", "behind"));
    expect(reader.snapshots).toBe(0);
    expect(reader.state("long").seq).toBe(50);
  });

  test.each(["future", "epoch"])("for the reason %s replace what is held, whatever their seq: the log is another", (reason) => {
    const { world, reader, feed } = opened(LONG.slice(0, 50));
    feed.follow("long", 0);
    feed.start();
    world.advance(1);
    world.logs.set("long", LONG.slice(0, 20));
    world.socket.say(world.snapshotLine("long", reason), LONG[20] as string);
    expect(reader.state("long").seq).toBe(21);
  });

  test("are asked for when the server comes back with another epoch", () => {
    const { world, reader, feed } = opened(LONG.slice(0, 50));
    feed.follow("long", 0);
    feed.start();
    world.advance(1);
    world.epoch = "e2";
    world.logs.set("long", LONG.slice(0, 20));
    world.socket.drop();
    world.advance(1_000);
    expect(world.socket.sent).toContainEqual({ type: "subscribe", conversation: "long" });
    expect(reader.state("long").seq).toBe(20);
  });
});

describe("the connection", () => {
  test("waits longer after each failed try, at most ten seconds, and begins anew once it held", () => {
    const { world, reader, feed } = opened();
    world.answers = false;
    feed.start();
    const waits: number[] = [];
    for (let round = 0; round < 9; round++) {
      world.socket.drop();
      const last = reader.connections.at(-1);
      if (last?.kind !== "reconnecting") throw new Error(`is ${last?.kind}`);
      waits.push(last.retryAt - world.now());
      world.advance(last.retryAt - world.now());
    }
    expect(waits).toEqual([250, 375, 750, 1500, 3000, 6000, 7500, 7500, 7500]);
    world.answers = true;
    world.greet();
    world.advance(6_000);
    world.socket.drop();
    expect(reader.connections.at(-1)).toMatchObject({ kind: "reconnecting", retryAt: world.now() + 250 });
  });

  test("that dies right after hello counts as a failed try", () => {
    const { world, reader, feed } = opened();
    feed.start();
    const waits: number[] = [];
    for (let round = 0; round < 4; round++) {
      world.advance(1);
      world.socket.drop();
      const last = reader.connections.at(-1);
      if (last?.kind !== "reconnecting") throw new Error(`is ${last?.kind}`);
      waits.push(last.retryAt - world.now());
      world.advance(last.retryAt - world.now());
    }
    expect(waits).toEqual([250, 375, 750, 1500]);
  });

  test("is given up when nothing is heard for twenty seconds, and a heartbeat is something", () => {
    const { world, feed } = opened();
    feed.start();
    world.advance(1);
    world.advance(15_000);
    world.socket.say({ type: "heartbeat", ts: 1 });
    world.advance(19_000);
    expect(world.sockets).toHaveLength(1);
    world.advance(2_000);
    expect(world.sockets).toHaveLength(2);
    expect(world.sockets[0]?.closed).toBe(true);
  });

  test("that never opens is given up too", () => {
    const { world, feed } = opened();
    world.answers = false;
    feed.start();
    world.advance(21_000);
    expect(world.sockets.length).toBeGreaterThan(1);
  });

  test.each(["online", "visible"] as const)("is tried at once when the page is %s again", (why) => {
    const { world, feed } = opened();
    world.answers = false;
    feed.start();
    for (let round = 0; round < 6; round++) {
      world.socket.drop();
      if (round < 5) world.advance(10_000);
    }
    const before = world.sockets.length;
    world.wake(why);
    expect(world.sockets).toHaveLength(before + 1);
  });

  test("is proved by a ping when the page becomes visible, and replaced within seconds when dead", () => {
    const { world, feed } = opened();
    feed.start();
    world.advance(1);
    world.wake("visible");
    expect(world.socket.sent.at(-1)).toMatchObject({ type: "ping" });
    world.advance(3_500);
    expect(world.sockets).toHaveLength(1);
    world.answers = false;
    world.wake("visible");
    world.advance(3_500);
    expect(world.sockets).toHaveLength(2);
  });

  test("says offline while the browser does, and still tries: the server may be on this machine", () => {
    const { world, reader, feed } = opened();
    feed.start();
    world.advance(1);
    world.goOffline();
    world.socket.drop();
    expect(reader.connections.at(-1)?.kind).toBe("offline");
    world.advance(11_000);
    expect(reader.connections.at(-1)?.kind).toBe("open");
  });

  test("counts what it missed, then says how many it caught up with", () => {
    const { world, reader, feed } = opened(LONG.slice(0, 10));
    feed.follow("long", 0);
    feed.start();
    world.advance(1);
    expect(reader.kinds).toEqual(["connecting", "open"]);
    world.socket.drop();
    world.logs.set("long", LONG.slice(0, 47));
    world.advance(1_000);
    expect(new Set(reader.kinds)).toEqual(new Set(["connecting", "open", "reconnecting", "catching_up"]));
    expect(reader.connections.at(-1)).toMatchObject({ kind: "open", caughtUpCount: 37 });
  });

  test("with nothing followed is open again without catching up with anything", () => {
    const { world, reader, feed } = opened();
    feed.start();
    world.advance(1);
    world.socket.drop();
    world.advance(1_000);
    expect(reader.connections.at(-1)).toMatchObject({ kind: "open", caughtUpCount: null });
  });

  test("closed with 4401 is signed out and not tried again until somebody signs in", () => {
    const { world, reader, feed } = opened();
    feed.start();
    world.advance(1);
    world.socket.drop(4401);
    expect(reader.connections.at(-1)?.kind).toBe("signed_out");
    world.advance(60_000);
    world.wake("online");
    expect(world.sockets).toHaveLength(1);
    feed.reconnectNow();
    world.advance(1);
    expect(reader.connections.at(-1)?.kind).toBe("open");
  });

  test("that ends before hello is reported, because a refused handshake looks the same", () => {
    const { world, reader, feed } = opened();
    world.answers = false;
    feed.start();
    world.socket.drop();
    expect(reader.unanswered).toBe(1);
  });

  test("to a server of another version works and says so", () => {
    const { world, reader, feed } = opened(LONG.slice(0, 3));
    world.serverVersion = "2.0.0";
    feed.follow("long", 0);
    feed.start();
    world.advance(1);
    expect(reader.connections.at(-1)).toEqual({ kind: "version_mismatch", page: "1.0.0", server: "2.0.0" });
    expect(reader.seqs).toEqual([1, 2, 3]);
  });

  test("that is stopped leaves no timer and no socket behind", () => {
    const { world, feed } = opened();
    feed.start();
    world.advance(1);
    feed.stop();
    expect(world.pendingTimers).toBe(0);
    expect(world.socket.closed).toBe(true);
    world.wake("online");
    expect(world.sockets).toHaveLength(1);
  });
});

test("the list is followed from where it was loaded, and after a loss from the last position", () => {
  const { world, reader, feed } = opened();
  feed.start();
  world.advance(1);
  expect(world.socket.sent).toEqual([]);
  feed.followList(40);
  expect(world.socket.sent).toEqual([{ type: "follow_list", after_pos: 40 }]);
  world.socket.say({ type: "listed", items: [{ id: "a" }], pos: 41 });
  expect(reader.listed).toHaveLength(1);
  world.socket.drop();
  world.advance(1_000);
  expect(world.socket.sent[0]).toEqual({ type: "follow_list", after_pos: 41 });
});

test("a list that is another one is loaded again", () => {
  const { world, reader, feed } = opened();
  feed.followList(40);
  feed.start();
  world.advance(1);
  world.socket.say({ type: "listed", items: [], pos: 7, reset: true });
  expect(reader.resets).toBe(1);
  world.epoch = "e2";
  feed.followList(7);
  world.socket.drop();
  world.advance(1_000);
  expect(reader.resets).toBe(2);
  expect(world.socket.sent).toEqual([]);
});

test("a conversation the server will not feed is reported and not asked for again", () => {
  const { world, reader, feed } = opened();
  feed.follow("nowhere", null);
  feed.start();
  world.advance(1);
  expect(reader.refused).toMatchObject([["nowhere", { code: "not_found" }]]);
  world.socket.drop();
  world.advance(1_000);
  expect(world.socket.sent.filter((line) => line.type === "subscribe")).toEqual([]);
});

test("many conversations share one socket", () => {
  const { world, reader, feed } = opened(LONG.slice(0, 5));
  world.logs.set("talk", linesOf("talk"));
  feed.follow("long", 0);
  feed.follow("talk", 0);
  feed.start();
  world.advance(1);
  expect(world.sockets).toHaveLength(1);
  expect(reader.state("long").seq).toBe(5);
  expect(reader.state("talk").seq).toBe(seqOf(linesOf("talk").at(-1) as string));
});
