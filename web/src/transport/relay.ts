/**
 * The page's end of the socket's worker: sockets as the feed wants them, one after another, all held by `worker/socket`.
 *
 * Called by the browser's ports. Where no worker can be started the page holds its sockets itself: more work, the same lines.
 */

import type { SocketLike } from "./ports";

/** A connection that ended without a word. */
const ABNORMAL = 1006;

export type RelayOrder =
  | { readonly kind: "open"; readonly number: number; readonly address: string; readonly protocols: string[] }
  | { readonly kind: "send"; readonly text: string }
  | { readonly kind: "close"; readonly code: number | undefined };

/** `number` is the socket's that it is about: what one of before still says comes late. */
export type RelayNews =
  | { readonly kind: "opened"; readonly number: number }
  | { readonly kind: "message"; readonly number: number; readonly text: string }
  | { readonly kind: "closed"; readonly number: number; readonly code: number; readonly reason: string };

/** The part of Worker that is used. */
export interface WorkerLike {
  postMessage(order: RelayOrder): void;
  terminate(): void;
  onmessage: ((event: { data: RelayNews }) => void) | null;
  onerror: ((event: never) => void) | null;
}

export class Relay {
  private readonly direct: (address: string, protocols: string[]) => SocketLike;
  private worker: WorkerLike | null;
  private number = 0;
  private current: SocketLike | null = null;

  /** Started at once: the worker is there by the time a socket is wanted. */
  constructor(start: () => WorkerLike, direct: (address: string, protocols: string[]) => SocketLike) {
    this.direct = direct;
    try {
      this.worker = start();
    } catch {
      this.worker = null;
      return;
    }
    this.worker.onmessage = ({ data }) => this.hear(data);
    this.worker.onerror = () => this.giveUp();
  }

  open(address: string, protocols: string[]): SocketLike {
    const { worker } = this;
    if (worker === null) return this.direct(address, protocols);
    this.number += 1;
    const { number } = this;
    const order = (what: RelayOrder): void => {
      if (this.number === number) worker.postMessage(what);
    };
    this.current = {
      send: (text) => order({ kind: "send", text }),
      close: (code) => order({ kind: "close", code }),
      onopen: null,
      onmessage: null,
      onclose: null,
    };
    worker.postMessage({ kind: "open", number, address, protocols });
    return this.current;
  }

  private hear(news: RelayNews): void {
    if (news.number !== this.number) return;
    if (news.kind === "message") this.current?.onmessage?.({ data: news.text });
    else if (news.kind === "opened") this.current?.onopen?.();
    else this.current?.onclose?.({ code: news.code, reason: news.reason });
  }

  /** It could not be fetched, or fell over: whoever waits for it tries again, and gets a socket of the page's own. */
  private giveUp(): void {
    this.worker?.terminate();
    this.worker = null;
    const socket = this.current;
    this.current = null;
    socket?.onclose?.({ code: ABNORMAL, reason: "" });
  }
}
