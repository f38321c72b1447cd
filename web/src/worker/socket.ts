/**
 * Holds the page's socket off its main thread, and passes on what comes in pieces the page can keep up with. A fast answer
 * comes in hundreds of messages a second; each would be a task of its own there, and together they leave no time to draw.
 *
 * `transport/relay` is the page's end of it. Knows nothing of what it passes on, but that a message is lines.
 */

import { Gathered } from "../transport/gathered";
import type { RelayOrder, RelayNews } from "../transport/relay";

let socket: WebSocket | null = null;

self.addEventListener("message", ({ data: order }: MessageEvent<RelayOrder>) => {
  if (order.kind === "open") open(order.number, order.address, order.protocols);
  else if (order.kind === "send") socket?.send(order.text);
  else socket?.close(order.code);
});

function open(number: number, address: string, protocols: string[]): void {
  const tell = (news: RelayNews): void => self.postMessage(news);
  const lines = new Gathered(after, (text) => tell({ kind: "message", number, text }));
  const opened = new WebSocket(address, protocols);
  opened.onopen = () => tell({ kind: "opened", number });
  opened.onmessage = ({ data }) => {
    if (typeof data === "string") lines.add(data);
  };
  opened.onclose = ({ code, reason }) => {
    lines.passOn();
    tell({ kind: "closed", number, code, reason });
  };
  socket = opened;
}

function after(delayMs: number, run: () => void): void {
  setTimeout(run, delayMs);
}
