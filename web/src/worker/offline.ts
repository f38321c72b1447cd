/**
 * The page's service worker: keeps the built page so that it opens without a server, and passes on presses on notices.
 *
 * Built by vite.config.ts into /sw.js, with the list of the page's files put in. Never touches /api: what was said is kept by
 * the page itself, for whoever is signed in (offline/copy.ts). A page that the server has newer is always taken from the
 * server, so nobody is left with an old one.
 */

interface Extendable extends Event {
  waitUntil(work: Promise<unknown>): void;
}

interface Fetching extends Extendable {
  readonly request: Request;
  respondWith(answer: Promise<Response>): void;
}

interface Pressed extends Extendable {
  readonly notification: Notification;
}

interface OpenPage {
  focus(): Promise<unknown>;
  postMessage(message: unknown): void;
}

interface Scope {
  addEventListener(type: "install" | "activate", run: (event: Extendable) => void): void;
  addEventListener(type: "fetch", run: (event: Fetching) => void): void;
  addEventListener(type: "notificationclick", run: (event: Pressed) => void): void;
  skipWaiting(): Promise<void>;
  readonly clients: {
    claim(): Promise<void>;
    matchAll(which: { type: "window"; includeUncontrolled: boolean }): Promise<OpenPage[]>;
    openWindow(address: string): Promise<unknown>;
  };
}

// Both put in by the build.
const VERSION = "__VERSION__";
const FILES: readonly string[] = JSON.parse("__FILES__");

const PREFIX = "palaver-page-";
const CURRENT = PREFIX + VERSION;

/** Pages of the former version that are still open fetch their parts from it. */
const KEPT_VERSIONS = 2;

/** A server that takes longer is as good as none; whoever waits for it sees the kept page and its banner. */
const PATIENCE_MS = 5000;

/** From here on a status is a proxy's word about a server that does not answer. */
const SERVER_FAULT = 500;

const scope = self as unknown as Scope;

scope.addEventListener("install", (event) => {
  event.waitUntil(keepPage().then(() => scope.skipWaiting()));
});

async function keepPage(): Promise<void> {
  const cache = await caches.open(CURRENT);
  await cache.addAll(FILES.map((path) => new Request(path, { cache: "no-cache" })));
}

scope.addEventListener("activate", (event) => {
  event.waitUntil(dropOld().then(() => scope.clients.claim()));
});

/** Caches are listed in the order they were made. */
async function dropOld(): Promise<void> {
  const others = (await caches.keys()).filter((name) => name.startsWith(PREFIX) && name !== CURRENT);
  await Promise.all(others.slice(0, Math.max(0, others.length - (KEPT_VERSIONS - 1))).map((name) => caches.delete(name)));
}

scope.addEventListener("fetch", (event) => {
  const { request } = event;
  const { origin, pathname } = new URL(request.url);
  if (request.method !== "GET" || origin !== location.origin || pathname.startsWith("/api/")) return;
  // An asset's name holds the hash of what is in it.
  if (pathname.startsWith("/assets/")) event.respondWith(kept(request).then((found) => found ?? fetch(request)));
  else if (request.mode === "navigate") event.respondWith(fresh(request, "/"));
  else if (FILES.includes(pathname)) event.respondWith(fresh(request, pathname));
});

async function kept(path: RequestInfo): Promise<Response | undefined> {
  return caches.match(path, { ignoreSearch: true });
}

/** What the server says; when it says nothing, or somebody before it says that it is not there, what is kept. */
async function fresh(request: Request, path: string): Promise<Response> {
  const asked = fetch(request);
  const late = new Promise<null>((resolve) => setTimeout(resolve, PATIENCE_MS, null));
  const answer = await Promise.race([asked.catch(() => null), late]);
  if (answer !== null && answer.status < SERVER_FAULT) return answer;
  return (await (await caches.open(CURRENT)).match(path)) ?? asked;
}

scope.addEventListener("notificationclick", (event) => {
  event.notification.close();
  const address: unknown = event.notification.data?.address;
  event.waitUntil(show(typeof address === "string" && address.startsWith("/") ? address : "/"));
});

async function show(address: string): Promise<void> {
  const [page] = await scope.clients.matchAll({ type: "window", includeUncontrolled: false });
  if (page === undefined) await scope.clients.openWindow(address);
  else {
    page.postMessage({ go: address });
    await page.focus();
  }
}
