/** The browser's own things as ports: socket, fetch, timers, storage, wake-ups. The only file here that touches the DOM. */

import { version as built } from "../../package.json";
import { HttpApi } from "./api";
import { forgetServer, keepPageKey, signedFetch, socketProtocols } from "./pagekey";
import type { KeyValue, Ports, SocketLike } from "./ports";
import { Relay, type WorkerLike } from "./relay";
import { localValues, tabValues } from "./storage";

const SOCKET = "/api/socket";

const NAME_UNDER = "palaver.client";

/** `version` is the page's own; the build's by default. */
export function browserPorts(options: { version?: string } = {}): Ports {
  const client = nameOf(localValues);
  const relay = new Relay(
    () => new Worker(new URL("../worker/socket.ts", import.meta.url), { type: "module" }) as WorkerLike,
    (address, protocols) => new WebSocket(address, protocols) as SocketLike,
    forgetServer,
  );
  return {
    api: new HttpApi(signedFetch, { client }),
    client,
    version: options.version ?? built,
    openSocket: () => relay.open(new URL(SOCKET, location.href.replace(/^http/, "ws")).href, socketProtocols(SOCKET)),
    now: () => Date.now(),
    after(delayMs, run) {
      const timer = setTimeout(run, delayMs);
      return () => clearTimeout(timer);
    },
    frame,
    random: Math.random,
    newId,
    isOnline: () => navigator.onLine,
    onWake(run) {
      const online = () => run("online");
      const visible = () => {
        if (!document.hidden) run("visible");
      };
      window.addEventListener("online", online);
      document.addEventListener("visibilitychange", visible);
      return () => {
        window.removeEventListener("online", online);
        document.removeEventListener("visibilitychange", visible);
      };
    },
    onOffline(run) {
      window.addEventListener("offline", run);
      return () => window.removeEventListener("offline", run);
    },
    onHide(run) {
      const hidden = () => {
        if (document.hidden) run();
      };
      // A page that is closed while it is shown may only hear the second.
      document.addEventListener("visibilitychange", hidden);
      window.addEventListener("pagehide", run);
      return () => {
        document.removeEventListener("visibilitychange", hidden);
        window.removeEventListener("pagehide", run);
      };
    },
    dayOf: (ts) => new Date(ts).setHours(0, 0, 0, 0),
    offlineCopy: () => import("../offline/copy").then(({ readCopy }) => readCopy()).catch(() => null),
    tab: tabValues,
    device: localValues,
    keepPageKey,
  };
}

/** A hidden page paints nothing: past this, whatever waits for a paint runs without one. */
const LONGEST_FRAME_MS = 200;

function frame(run: () => void): () => void {
  const cancel = () => {
    cancelAnimationFrame(request);
    clearTimeout(timer);
  };
  const once = () => {
    cancel();
    run();
  };
  const request = requestAnimationFrame(once);
  const timer = setTimeout(once, document.hidden ? 0 : LONGEST_FRAME_MS);
  return cancel;
}

/** `crypto.randomUUID` exists only on https and loopback; a page on a home network has neither. */
function newId(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}

/** The browser's, not the tab's: what was answered in a tab closed long ago was answered here. */
function nameOf(device: KeyValue): string {
  const name = device.get(NAME_UNDER) ?? newId();
  device.set(NAME_UNDER, name);
  return name;
}
