/** The browser's own things as ports: socket, fetch, timers, storage, wake-ups. The only file here that touches the DOM. */

import type { Ports } from "./ports";

/** `version` is the page's own; the build's by default. */
export function browserPorts(_options?: { version?: string }): Ports {
  throw new Error("stub");
}
