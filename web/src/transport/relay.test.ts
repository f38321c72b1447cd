import { expect, test } from "vitest";
import type { SocketLike } from "./ports";
import { Relay, type RelayNews, type RelayOrder, type WorkerLike } from "./relay";

const PROTOCOLS = Promise.resolve(["palaver"]);

class FakeWorker implements WorkerLike {
  readonly orders: RelayOrder[] = [];
  onmessage: WorkerLike["onmessage"] = null;
  onerror: WorkerLike["onerror"] = null;

  postMessage(order: RelayOrder): void {
    this.orders.push(order);
  }

  ended = false;

  terminate(): void {
    this.ended = true;
  }

  say(data: RelayNews): void {
    this.onmessage?.({ data });
  }
}

function setUp() {
  const worker = new FakeWorker();
  const direct: string[] = [];
  const ends = { count: 0 };
  const relay = new Relay(
    () => worker,
    (address, protocols) => {
      direct.push(`${address} ${protocols}`);
      return socketOf();
    },
    () => {
      ends.count += 1;
    },
  );
  return { worker, direct, relay, ends };
}

function socketOf(): SocketLike {
  return { send: () => {}, close: () => {}, onopen: null, onmessage: null, onclose: null };
}

function heardBy(socket: SocketLike): unknown[] {
  const heard: unknown[] = [];
  socket.onopen = () => heard.push("open");
  socket.onmessage = ({ data }) => heard.push(data);
  socket.onclose = (closed) => heard.push(closed);
  return heard;
}

test("a socket says and hears through the worker", async () => {
  const { worker, relay, direct, ends } = setUp();
  const socket = relay.open("ws://here/", PROTOCOLS);
  const heard = heardBy(socket);
  await PROTOCOLS;
  socket.send("hello");
  socket.close(1000);
  expect(worker.orders).toEqual([
    { kind: "open", number: 1, address: "ws://here/", protocols: ["palaver"] },
    { kind: "send", text: "hello" },
    { kind: "close", code: 1000 },
  ]);
  worker.say({ kind: "opened", number: 1 });
  worker.say({ kind: "message", number: 1, text: "a\nb" });
  worker.say({ kind: "closed", number: 1, code: 4401, reason: "no" });
  expect(heard).toEqual(["open", "a\nb", { code: 4401, reason: "no" }]);
  expect(direct).toEqual([]);
  expect(ends.count).toBe(1);
});

test("a socket that was closed before its protocols were known never begins", async () => {
  const { worker, relay } = setUp();
  relay.open("ws://here/", PROTOCOLS).close();
  await PROTOCOLS;
  expect(worker.orders).toEqual([]);
});

test("a socket whose protocols cannot be had ends like one that nobody answered", async () => {
  const { worker, relay, ends } = setUp();
  const failing = Promise.reject(new Error("nobody answers"));
  const heard = heardBy(relay.open("ws://here/", failing));
  await failing.catch(() => undefined);
  expect(heard).toEqual([{ code: 1006, reason: "" }]);
  expect(worker.orders).toEqual([]);
  expect(ends.count).toBe(1);
});

test("what the socket of before still says is not taken for the new one's, and it closes no other", async () => {
  const { worker, relay } = setUp();
  const first = relay.open("ws://here/", PROTOCOLS);
  await PROTOCOLS;
  const second = relay.open("ws://here/", PROTOCOLS);
  const heard = heardBy(second);
  await PROTOCOLS;
  worker.say({ kind: "message", number: 1, text: "late" });
  worker.say({ kind: "closed", number: 1, code: 1000, reason: "" });
  first.close(1000);
  expect(heard).toEqual([]);
  expect(worker.orders.map(({ kind }) => kind)).toEqual(["open", "open"]);
});

test("a worker that cannot be started leaves the page a socket of its own", async () => {
  const direct: string[] = [];
  const own = socketOf();
  const relay = new Relay(
    () => {
      throw new Error("no workers here");
    },
    (address, protocols) => {
      direct.push(`${address} ${protocols}`);
      return own;
    },
    () => undefined,
  );
  const heard = heardBy(relay.open("ws://here/", PROTOCOLS));
  await PROTOCOLS;
  expect(direct).toEqual(["ws://here/ palaver"]);
  own.onopen?.();
  own.onmessage?.({ data: "a" });
  own.onclose?.({ code: 4401, reason: "no" });
  expect(heard).toEqual(["open", "a", { code: 4401, reason: "no" }]);
});

test("a worker that falls over ends its socket, and the next is the page's own", async () => {
  const { worker, relay, direct } = setUp();
  const heard = heardBy(relay.open("ws://here/", PROTOCOLS));
  await PROTOCOLS;
  worker.onerror?.(undefined as never);
  expect(heard).toEqual([{ code: 1006, reason: "" }]);
  expect(worker.ended).toBe(true);
  relay.open("ws://here/", PROTOCOLS);
  await PROTOCOLS;
  expect(direct).toEqual(["ws://here/ palaver"]);
});
