/**
 * The store as it would be with one conversation at an earlier moment: what shows a transcript shows that one, and changes
 * nothing.
 */

import type { MarkdownBook } from "../../model/markdown";
import { TurnWork } from "../../model/turnwork";
import { RowBook } from "../../model/rowbook";
import type { OpenConversation, Store } from "../../model/snapshot";
import type { State } from "../../protocol/events.gen";
import { startOfDay } from "../../measures";

/** Rows are made anew for a moment that is not the next one; texts are kept, since most are the same. */
export function viewOf(id: string, state: State, markdown: MarkdownBook): OpenConversation {
  const rows = new RowBook(startOfDay).rows(state);
  return { id, phase: "ready", error: null, state, rows, older: "start", prependCount: 0, outbox: [], draft: "", selected: null, leftAt: null, markdown, work: new TurnWork() };
}

export function frozen(store: Store, view: OpenConversation): Store {
  const base = store.getSnapshot();
  const open = new Map(base.open).set(view.id, view);
  let last = { base, shown: { ...base, open } };
  const shown = () => {
    const now = store.getSnapshot();
    if (now !== last.base) last = { base: now, shown: { ...now, open: new Map(now.open).set(view.id, view) } };
    return last.shown;
  };
  // Whatever is not said here is the store's own: disclosure, other conversations, the list.
  return new Proxy(store, {
    get(target, name): unknown {
      if (name === "getSnapshot") return shown;
      if (name === "command") return () => "";
      return Reflect.get(target, name);
    },
  });
}
