/** Reads a conversation's log while the inspector looks at it, and again from where it was after a loss. */

import { useEffect, useRef, useState } from "react";
import { EventLog } from "../../model/eventlog";
import { asApiError, type ApiError } from "../../transport/api";
import { backoffMs } from "../../transport/backoff";
import { readLog, type LogItem } from "../../transport/eventstream";

/** Ten times a second is live enough for a list that is read. */
const SHOW_MS = 100;

export interface Reading {
  log: EventLog;
  /** Changes whenever the log did. */
  version: number;
  phase: "loading" | "live" | "lost" | "full" | "failed";
  /** When the next try comes, after a loss. */
  retryAt: number;
  error: ApiError | null;
}

export function useLog(conversation: string): Reading {
  const log = useRef<EventLog>(null);
  log.current ??= new EventLog();
  const [reading, setReading] = useState<Omit<Reading, "log">>({ version: 0, phase: "loading", retryAt: 0, error: null });

  useEffect(() => {
    const book = log.current ?? new EventLog();
    const leave = new AbortController();
    let timer: ReturnType<typeof setTimeout> | undefined;
    let showing: ReturnType<typeof setTimeout> | undefined;
    let attempt = 0;
    let phase: Reading["phase"] = "loading";

    const show = (change: Partial<Reading> = {}): void => {
      clearTimeout(showing);
      showing = undefined;
      setReading((now) => ({ ...now, phase, version: now.version + 1, ...change }));
    };
    const stream = new AbortController();
    leave.signal.addEventListener("abort", () => stream.abort());

    const take = (items: readonly LogItem[]): void => {
      attempt = 0;
      let lines: string[] = [];
      for (const item of items) {
        if (item.kind === "event") lines.push(item.line);
        else {
          book.take(lines);
          lines = [];
          if (item.kind === "snapshot") book.adopt(item.snapshot.state);
          else phase = "live";
        }
      }
      book.take(lines);
      if (book.isFull) {
        phase = "full";
        stream.abort();
        show();
      } else showing ??= setTimeout(show, SHOW_MS);
    };

    const read = async (): Promise<void> => {
      const error = await readLog(conversation, book.seq, stream.signal, take).catch(asApiError);
      if (leave.signal.aborted || book.isFull) return;
      if (error instanceof Error && !error.retryable) {
        phase = "failed";
        show({ error });
        return;
      }
      const wait = backoffMs(attempt++, Math.random);
      phase = "lost";
      show({ retryAt: Date.now() + wait });
      timer = setTimeout(() => {
        phase = "loading";
        void read();
      }, wait);
    };
    void read();
    return () => {
      leave.abort();
      clearTimeout(timer);
      clearTimeout(showing);
    };
  }, [conversation]);

  return { log: log.current, ...reading };
}
