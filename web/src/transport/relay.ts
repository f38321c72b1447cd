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
  private readonly ended: () => void;
  private worker: WorkerLike | null;
  private own: SocketLike | null = null;
  private number = 0;
  private current: SocketLike | null = null;

  /** Started at once: the worker is there by the time a socket is wanted. `ended` is called after each socket. */
  constructor(start: () => WorkerLike, direct: (address: string, protocols: string[]) => SocketLike, ended: () => void) {
    this.direct = direct;
    this.ended = ended;
    try {
      this.worker = start();
    } catch {
      this.worker = null;
      return;
    }
    this.worker.onmessage = ({ data }) => this.hear(data);
    this.worker.onerror = () => this.giveUp();
  }

  /** The socket begins once its protocols are known, unless it was closed before. */
  open(address: string, protocols: Promise<string[]>): SocketLike {
    this.number += 1;
    const { number } = this;
    let begun = false;
    const socket: SocketLike = {
      send: (text) => {
        if (this.number === number) this.tell({ kind: "send", text });
      },
      close: (code) => {
        if (this.number !== number) return;
        if (begun) this.tell({ kind: "close", code });
        else this.current = null;
      },
      onopen: null,
      onmessage: null,
      onclose: null,
    };
    this.own?.close();
    this.own = null;
    this.current = socket;
    const begin = (offered: string[]): void => {
      if (this.current !== socket) return;
      begun = true;
      if (this.worker === null) this.openOwn(number, address, offered);
      else this.tell({ kind: "open", number, address, protocols: offered });
    };
    protocols.then(begin, () => this.hear({ kind: "closed", number, code: ABNORMAL, reason: "" }));
    return socket;
  }

  private tell(order: RelayOrder): void {
    if (this.worker !== null) this.worker.postMessage(order);
    else if (order.kind === "send") this.own?.send(order.text);
    else if (order.kind === "close") this.own?.close(order.code);
  }

  private openOwn(number: number, address: string, protocols: string[]): void {
    const own = this.direct(address, protocols);
    own.onopen = () => this.hear({ kind: "opened", number });
    own.onmessage = ({ data }) => {
      if (typeof data === "string") this.hear({ kind: "message", number, text: data });
    };
    own.onclose = ({ code, reason }) => this.hear({ kind: "closed", number, code, reason });
    this.own = own;
  }

  private hear(news: RelayNews): void {
    if (news.number !== this.number) return;
    if (news.kind === "message") this.current?.onmessage?.({ data: news.text });
    else if (news.kind === "opened") this.current?.onopen?.();
    else {
      this.ended();
      this.current?.onclose?.({ code: news.code, reason: news.reason });
    }
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
