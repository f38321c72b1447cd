/** The browser's storage as plain keys and values. It may be full or forbidden: then a page remembers until it closes. */

import type { KeyValue } from "./ports";

function keyValue(open: () => Storage): KeyValue {
  const unkept = new Map<string, string | null>();
  return {
    get(key) {
      try {
        return unkept.get(key) ?? open().getItem(key);
      } catch {
        return null;
      }
    },
    set(key, value) {
      try {
        if (value === null) open().removeItem(key);
        else open().setItem(key, value);
        unkept.delete(key);
      } catch {
        unkept.set(key, value);
      }
    },
  };
}

export const localValues = keyValue(() => localStorage);
export const tabValues = keyValue(() => sessionStorage);
