/** Whether the window is too narrow for a list beside the conversation. The same width as in style/layout.css. */

import { useSyncExternalStore } from "react";

const query = window.matchMedia("(max-width: 52rem)");

export function useIsNarrow(): boolean {
  return useSyncExternalStore(
    (listener) => {
      query.addEventListener("change", listener);
      return () => query.removeEventListener("change", listener);
    },
    () => query.matches,
  );
}
