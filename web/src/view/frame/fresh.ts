/** What a screen shows of the server: fetched when it opens and when the page is looked at again, or ever anew. */

import { useCallback, useEffect, useRef, useState } from "react";
import { laterApi, type LaterApi } from "../../transport/api.later";
import { asApiError, type ApiError } from "../../transport/api";
import { useStore } from "../store";

let made: LaterApi | null = null;

export function useLaterApi(): LaterApi {
  const { client } = useStore();
  return (made ??= laterApi(client));
}

export interface Fresh<T> {
  /** The latest that came; undefined until something did. */
  value: T | undefined;
  /** Why the latest try failed. */
  error: ApiError | null;
  loading: boolean;
  again: () => void;
}

/**
 * `load` should keep its identity. With `everyMs` it is asked again that long after each answer, while the page is visible:
 * nobody looks at a hidden one.
 */
export function useFresh<T>(load: () => Promise<T>, everyMs?: number): Fresh<T> {
  const [state, setState] = useState<Omit<Fresh<T>, "again">>({ value: undefined, error: null, loading: true });
  const ask = useRef<() => void>(() => undefined);

  useEffect(() => {
    let left = false;
    let asking = false;
    let timer: ReturnType<typeof setTimeout> | undefined;
    const run = async (): Promise<void> => {
      clearTimeout(timer);
      if (asking) return;
      asking = true;
      setState((now) => ({ ...now, loading: true }));
      const answer = await load().then(
        (value) => ({ value, error: null }),
        (cause: unknown) => ({ error: asApiError(cause) }),
      );
      asking = false;
      if (left) return;
      setState((now) => ({ ...now, ...answer, loading: false }));
      if (everyMs !== undefined && !document.hidden) timer = setTimeout(() => void run(), everyMs);
    };
    const onVisible = (): void => {
      if (!document.hidden) void run();
    };
    ask.current = () => void run();
    void run();
    document.addEventListener("visibilitychange", onVisible);
    return () => {
      left = true;
      clearTimeout(timer);
      document.removeEventListener("visibilitychange", onVisible);
    };
  }, [load, everyMs]);

  const again = useCallback(() => ask.current(), []);
  return { ...state, again };
}
