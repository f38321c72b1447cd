import { createHmac } from "node:crypto";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { forgetServer, keepPageKey, signedFetch, socketProtocols } from "./pagekey";
import { forgetChallenge } from "./proof";

/** As a server: what it was asked, and what it says of its challenge. */
const server = { challenge: "first", statuses: [] as number[], asked: [] as { address: string; proof: string | null; init: RequestInit }[] };

async function answer(address: string, init: RequestInit = {}): Promise<Response> {
  server.asked.push({ address, proof: new Headers(init.headers).get("palaver-proof"), init });
  const status = address === "/api/health" ? 200 : (server.statuses.shift() ?? 200);
  return new Response("{}", { status, headers: { "palaver-challenge": server.challenge } });
}

let kept: Map<string, string>;

beforeEach(() => {
  Object.assign(server, { challenge: "first", statuses: [], asked: [] });
  kept = new Map();
  forgetChallenge();
  vi.stubGlobal("fetch", vi.fn(answer));
  vi.stubGlobal("location", { href: "http://127.0.0.1:8420/c/x", host: "127.0.0.1:8420" });
  vi.stubGlobal("localStorage", {
    getItem: (key: string) => kept.get(key) ?? null,
    setItem: (key: string, value: string) => kept.set(key, value),
    removeItem: (key: string) => kept.delete(key),
  });
});

afterEach(() => {
  keepPageKey(null);
  vi.unstubAllGlobals();
});

function isOf(proof: string | null | undefined, key: string, request: string): boolean {
  const [session, secret = ""] = key.split(".");
  const [named, challenge, once, mac] = (proof ?? "").split(".");
  const expected = createHmac("sha256", secret).update(`${challenge}\n${once}\n${request}`).digest("base64url");
  return named === session && challenge === server.challenge && mac === expected;
}

function proofs(): (string | null)[] {
  return server.asked.filter(({ address }) => address !== "/api/health").map(({ proof }) => proof);
}

test("a request carries a proof of itself beside its own headers, and the key is nowhere in it", async () => {
  keepPageKey("id.secret");
  await signedFetch("/api/agents?a=b%20c&d=ö", { method: "POST", headers: { "palaver-client": "laptop" } });
  const sent = server.asked.at(-1);
  expect(isOf(sent?.proof, "id.secret", "POST\n127.0.0.1:8420\n/api/agents?a=b%20c&d=%C3%B6")).toBe(true);
  expect(new Headers(sent?.init.headers).get("palaver-client")).toBe("laptop");
  expect(JSON.stringify(server.asked.map(({ address, init }) => [address, [...new Headers(init.headers)]]))).not.toContain("secret");
});

test("no two requests carry the same proof, and one challenge serves both", async () => {
  keepPageKey("id.secret");
  await signedFetch("/api/agents");
  await signedFetch("/api/agents");
  expect(new Set(proofs()).size).toBe(2);
  expect(server.asked.map(({ address }) => address)).toEqual(["/api/health", "/api/agents", "/api/agents"]);
});

test("requests that begin together ask for one challenge", async () => {
  keepPageKey("id.secret");
  await Promise.all([signedFetch("/api/agents"), signedFetch("/api/backends"), socketProtocols("/api/socket")]);
  expect(server.asked.map(({ address }) => address)).toEqual(["/api/health", "/api/agents", "/api/backends"]);
});

test("requests that a server refuses together after its restart are each told once more", async () => {
  keepPageKey("id.secret");
  await signedFetch("/api/agents");
  Object.assign(server, { challenge: "second", statuses: [401, 401] });
  const answers = await Promise.all([signedFetch("/api/agents"), signedFetch("/api/backends")]);
  expect(answers.map(({ status }) => status)).toEqual([200, 200]);
});

test("a socket offers a proof that is none for a request", async () => {
  keepPageKey("id.secret");
  const [name, offered] = await socketProtocols("/api/socket");
  const proof = offered?.replace("palaver.proof.", "");
  expect(name).toBe("palaver");
  expect(isOf(proof, "id.secret", "SOCKET\n127.0.0.1:8420\n/api/socket")).toBe(true);
  expect(isOf(proof, "id.secret", "GET\n127.0.0.1:8420\n/api/socket")).toBe(false);
});

test("the key is the one that another tab signed in with", async () => {
  keepPageKey("id.old");
  await signedFetch("/api/agents");
  kept.set("palaver.key", "other.new");
  await signedFetch("/api/agents");
  expect(isOf(proofs().at(-1), "other.new", "GET\n127.0.0.1:8420\n/api/agents")).toBe(true);
});

test("a server that began anew is told once more, with its own challenge", async () => {
  keepPageKey("id.secret");
  await signedFetch("/api/agents");
  Object.assign(server, { challenge: "second", statuses: [401, 401, 401] });
  const refused = await signedFetch("/api/agents");
  expect(refused.status).toBe(401);
  expect(proofs().map((proof) => proof?.split(".")[1])).toEqual(["first", "first", "second"]);
});

test("after a connection that was lost the challenge is asked for anew", async () => {
  keepPageKey("id.secret");
  await signedFetch("/api/agents");
  vi.stubGlobal("fetch", () => Promise.reject(new TypeError("nobody answers")));
  await expect(signedFetch("/api/agents")).rejects.toThrow("nobody answers");
  vi.stubGlobal("fetch", answer);
  server.challenge = "second";
  await signedFetch("/api/agents");
  forgetServer();
  await vi.waitFor(async () => {
    server.challenge = "third";
    await signedFetch("/api/agents");
    expect(proofs().at(-1)?.split(".")[1]).toBe("third");
  });
  expect(server.asked.filter(({ address }) => address === "/api/health").length).toBeGreaterThan(1);
});

test("a browser without storage or keys of its own keeps the key until the page closes", async () => {
  vi.stubGlobal("localStorage", undefined);
  vi.stubGlobal("crypto", { getRandomValues: crypto.getRandomValues.bind(crypto) });
  keepPageKey("id.unkept");
  await signedFetch("/api/agents");
  expect(isOf(proofs().at(-1), "id.unkept", "GET\n127.0.0.1:8420\n/api/agents")).toBe(true);
});

test("a page that is signed out proves nothing, and asks once", async () => {
  keepPageKey(null);
  server.statuses = [401];
  await signedFetch("/api/agents");
  expect(proofs()).toEqual([""]);
  expect(await socketProtocols("/api/socket")).toEqual(["palaver"]);
});
