/**
 * Finding in a conversation. The browser's own find cannot see rows that are not drawn, so this one looks through the
 * messages, jumps between hits and marks the words on the page.
 */

import { useDeferredValue, useEffect, useMemo, useRef, useState, type KeyboardEvent } from "react";
import { findInMessages } from "../../model/find";
import type { Search } from "../../model/search";
import type { Message } from "../../protocol/events.gen";
import { said } from "../../sentences";
import { later } from "../../text.later";
import { usePageActions } from "../actions";
import { Icon } from "../controls/Icon";
import { usePick, usePicked, useStore } from "../store";
import { Marked } from "./Marked";
import { useMarkedWords } from "./marks";

const NONE: readonly Message[] = [];

interface FindProps {
  id: string;
  onClose: () => void;
}

// A word of one letter is everywhere.
const SHORTEST = 2;

export default function Find({ id, onClose }: FindProps) {
  const store = useStore();
  const actions = usePageActions();
  const messages = usePicked(id, ({ state }) => state.messages) ?? NONE;
  const hasOlder = usePicked(id, ({ state }) => state.offset > 0) ?? false;
  const [query, setQuery] = useState("");
  const [at, setAt] = useState(0);
  const field = useRef<HTMLInputElement>(null);
  const wanted = useDeferredValue(query.trim());
  const hits = useMemo(
    () => (wanted.length < SHORTEST ? [] : findInMessages(messages, wanted)),
    [messages, wanted],
  );
  const search = usePick((snapshot) => snapshot.search);
  useMarkedWords(wanted.length < SHORTEST ? "" : wanted);
  useEffect(() => field.current?.focus(), []);

  const go = (to: number): void => {
    if (hits.length === 0) return;
    const next = (to + hits.length) % hits.length;
    setAt(next);
    const hit = hits[next];
    if (hit) actions.open(id, hit.seq);
  };

  const onKeyDown = (event: KeyboardEvent): void => {
    if (event.key === "Enter" && !event.nativeEvent.isComposing) go(event.shiftKey ? at - 1 : hits.length > 0 && wanted === query.trim() ? at + 1 : 0);
    else if (event.key === "Escape") onClose();
    else return;
    event.preventDefault();
    event.stopPropagation();
  };

  const askServer = hasOlder && wanted.length >= SHORTEST;
  const isAsked = search.conversation === id && search.query === wanted && search.phase !== "idle";
  return (
    <div className="find" role="search" aria-label={later.find.region} onKeyDown={onKeyDown}>
      <div className="find-line">
        <Icon name="search" />
        <input
          ref={field}
          className="bare-field"
          aria-label={later.find.label}
          placeholder={later.find.placeholder}
          value={query}
          onChange={(event) => {
            setQuery(event.target.value);
            setAt(-1);
          }}
        />
        <span className="hint tabular" role="status">
          {wanted.length >= SHORTEST && (hits.length === 0 ? later.find.none : later.find.result(Math.max(0, at) + 1, hits.length))}
        </span>
        <button type="button" className="icon-button small" aria-label={later.find.previous} disabled={hits.length === 0} onClick={() => go(at - 1)}>
          <Icon name="back" />
        </button>
        <button type="button" className="icon-button small" aria-label={later.find.next} disabled={hits.length === 0} onClick={() => go(at + 1)}>
          <Icon name="chevron" />
        </button>
        <button type="button" className="icon-button small" aria-label={later.find.close} onClick={onClose}>
          <Icon name="close" />
        </button>
      </div>
      {askServer && !isAsked && (
        <p className="find-more">
          {later.find.olderHint}{" "}
          <button type="button" className="link-button" onClick={() => store.search(wanted, id)}>
            {later.find.older}
          </button>
        </p>
      )}
      {askServer && isAsked && <Everywhere id={id} search={search} onAgain={() => store.search(wanted, id)} />}
    </div>
  );
}

/** What the server found in all of the conversation, or what it is about. */
function Everywhere({ id, search, onAgain }: { id: string; search: Search; onAgain: () => void }) {
  const actions = usePageActions();
  switch (search.phase) {
    case "failed":
      return (
        <p className="find-more" role="alert">
          {search.error ? said(search.error.message) : later.hits.failed}{" "}
          <button type="button" className="link-button" onClick={onAgain}>
            {later.find.again}
          </button>
        </p>
      );
    case "ready":
      return (
        <ul className="find-hits">
          {search.hits.length === 0 && <li className="list-note">{later.find.none}</li>}
          {search.hits.map((hit) => (
            <li key={hit.message}>
              <button type="button" className="find-hit" onClick={() => actions.open(id, hit.seq)}>
                <Marked hit={hit} query={search.query} />
              </button>
            </li>
          ))}
        </ul>
      );
    default:
      return (
        <p className="find-more" role="status">
          {later.hits.searching}
        </p>
      );
  }
}
