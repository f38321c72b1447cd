/**
 * Whether the transcript follows its end, as a pure reducer.
 *
 * The view reports what happened and does what `scrollToEnd` says. Rules: it follows until the reader scrolls away; a
 * reader's scroll cancels a pending scroll to the end; only returning to the end, the pill or sending follows again.
 */

export interface Follow {
  readonly following: boolean;
  /** Rows that arrived below while reading; the pill's number. */
  readonly newCount: number;
  /** Do it after this render, then report `settled`. */
  readonly scrollToEnd: boolean;
}

export type FollowEvent =
  /** The reader moved it: wheel, touch, key, scrollbar. `atEnd`: within a line's height of the end. */
  | { type: "scrolled"; atEnd: boolean }
  /** Content grew below. `newRows`: rows that were not there before. */
  | { type: "grew"; newRows: number }
  | { type: "jumped_to_end" }
  /** Shown a certain row: a deep link or a search hit. */
  | { type: "jumped_away" }
  | { type: "sent" }
  | { type: "settled" };

export const FOLLOWING: Follow = { following: true, newCount: 0, scrollToEnd: true };

const AT_END: Follow = { following: true, newCount: 0, scrollToEnd: false };

/** The same object when nothing changes. */
export function follow(state: Follow, event: FollowEvent): Follow {
  switch (event.type) {
    case "scrolled":
      if (event.atEnd) return same(state, AT_END);
      return same(state, { ...state, following: false, scrollToEnd: false });
    case "grew":
      if (state.following) return same(state, FOLLOWING);
      return same(state, { ...state, newCount: state.newCount + event.newRows });
    case "jumped_to_end":
    case "sent":
      return same(state, FOLLOWING);
    case "jumped_away":
      return same(state, { ...state, following: false, scrollToEnd: false });
    case "settled":
      return same(state, { ...state, scrollToEnd: false });
    default:
      return event satisfies never;
  }
}

function same(known: Follow, next: Follow): Follow {
  const unchanged =
    known.following === next.following && known.newCount === next.newCount && known.scrollToEnd === next.scrollToEnd;
  return unchanged ? known : next;
}
