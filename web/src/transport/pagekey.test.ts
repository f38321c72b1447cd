import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { keepPageKey, signedFetch, socketProtocols } from "./pagekey";

const fetched = vi.fn(async (_input: unknown, _init?: RequestInit) => new Response("ok"));

beforeEach(() => vi.stubGlobal("fetch", fetched));

afterEach(() => {
  keepPageKey(null);
  vi.unstubAllGlobals();
  fetched.mockClear();
});

function sentHeaders(): Record<string, string> {
  return Object.fromEntries(new Headers(fetched.mock.lastCall?.[1]?.headers));
}

function stubStorage(): Map<string, string> {
  const kept = new Map<string, string>();
  vi.stubGlobal("localStorage", {
    getItem: (key: string) => kept.get(key) ?? null,
    setItem: (key: string, value: string) => kept.set(key, value),
    removeItem: (key: string) => kept.delete(key),
  });
  return kept;
}

test("the key goes with every request as a header, beside its own, and never in the address", async () => {
  stubStorage();
  keepPageKey("secret");
  await signedFetch("/api/agents", { headers: { "palaver-client": "laptop" } });
  expect(sentHeaders()).toEqual({ "palaver-client": "laptop", "palaver-key": "secret" });
  expect(fetched.mock.lastCall?.[0]).toBe("/api/agents");
});

test("the key is the one that another tab signed in with", async () => {
  const kept = stubStorage();
  keepPageKey("old");
  kept.set("palaver.key", "new");
  await signedFetch("/api/agents");
  expect(sentHeaders()["palaver-key"]).toBe("new");
  expect(socketProtocols()).toEqual(["palaver", "palaver.key.new"]);
});

test("a browser without storage keeps the key until the page closes", async () => {
  vi.stubGlobal("localStorage", undefined);
  keepPageKey("secret");
  await signedFetch("/api/agents");
  expect(sentHeaders()["palaver-key"]).toBe("secret");
});

test("a page that is signed out offers no key", () => {
  stubStorage();
  keepPageKey("secret");
  keepPageKey(null);
  expect(socketProtocols()).toEqual(["palaver"]);
});
