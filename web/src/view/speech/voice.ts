/**
 * Says sentences, one after the other: with the sound that the server makes of them, or with the browser's own voice where the
 * server has none. Called by what reads aloud. A new sentence waits for the one before; `hush` ends all of it at once.
 */

import type { LaterApi } from "../../transport/api.later";

export type Spoke = "server" | "browser" | "none";

/** A browser that never says when it ended must not hold up the next sentence for ever. */
const LONGEST_MS = 60_000;
/** Beyond this many sentences the listener is too far behind to want them. */
const WAITING = 40;

export class Voice {
  private readonly api: LaterApi;
  private readonly tell: (speaking: boolean, spoke: Spoke | null) => void;
  private pending: string[] = [];
  private saying: AbortController | null = null;
  /** Whether the server has a voice; null until it was asked. */
  private served: boolean | null = null;
  private context: AudioContext | null = null;

  constructor(api: LaterApi, tell: (speaking: boolean, spoke: Spoke | null) => void) {
    this.api = api;
    this.tell = tell;
  }

  say(...sentences: string[]): void {
    this.pending.push(...sentences);
    this.pending.splice(0, Math.max(0, this.pending.length - WAITING));
    if (this.saying === null && this.pending.length > 0) void this.run();
  }

  hush(): void {
    this.pending = [];
    this.saying?.abort();
  }

  /** Nobody listens any more. */
  close(): void {
    this.hush();
    void this.context?.close().catch(() => undefined);
    this.context = null;
  }

  private async run(): Promise<void> {
    const saying = new AbortController();
    this.saying = saying;
    this.tell(true, null);
    let spoke: Spoke | null = null;
    for (let next = this.pending.shift(); next !== undefined && !saying.signal.aborted; next = this.pending.shift()) {
      spoke = await this.speak(next, saying.signal);
    }
    this.saying = null;
    this.tell(false, spoke);
    // What came while it was being silenced.
    if (this.pending.length > 0) void this.run();
  }

  private async speak(sentence: string, signal: AbortSignal): Promise<Spoke> {
    if (this.served !== false && (await this.byServer(sentence, signal))) return "server";
    if (signal.aborted) return "none";
    return (await byBrowser(sentence, signal)) ? "browser" : "none";
  }

  private async byServer(sentence: string, signal: AbortSignal): Promise<boolean> {
    const sound = await this.api.speech(sentence, signal).catch(() => undefined);
    if (sound !== undefined) this.served = sound !== null;
    if (!sound) return false;
    try {
      this.context ??= new AudioContext();
      await this.context.resume();
      return await played(this.context, await this.context.decodeAudioData(sound), signal);
    } catch {
      return false;
    }
  }
}

function played(context: AudioContext, buffer: AudioBuffer, signal: AbortSignal): Promise<boolean> {
  const source = context.createBufferSource();
  source.buffer = buffer;
  source.connect(context.destination);
  return new Promise((resolve) => {
    source.onended = () => resolve(true);
    signal.addEventListener("abort", () => source.stop(), { once: true });
    source.start();
  });
}

function byBrowser(sentence: string, signal: AbortSignal): Promise<boolean> {
  if (!("speechSynthesis" in window)) return Promise.resolve(false);
  const utterance = new SpeechSynthesisUtterance(sentence);
  return new Promise((resolve) => {
    const timer = setTimeout(() => resolve(false), LONGEST_MS);
    const end = (spoke: boolean) => () => {
      clearTimeout(timer);
      resolve(spoke);
    };
    utterance.onend = end(true);
    // A browser without voices says so here.
    utterance.onerror = end(false);
    signal.addEventListener(
      "abort",
      () => {
        speechSynthesis.cancel();
        end(false)();
      },
      { once: true },
    );
    speechSynthesis.speak(utterance);
  });
}
