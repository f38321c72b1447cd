/** All conversations: those that wait for you first. One box searches titles and everything ever said. */

import { Suspense, useEffect, useRef, useState } from "react";
import { said } from "../../sentences";
import { text } from "../../text";
import { usePageActions } from "../actions";
import { Icon, type IconName } from "../controls/Icon";
import { Mark } from "../controls/Mark";
import { ScreenLink } from "../frame/ScreenLink";
import { commandKey, onAsked } from "../keys";
import { SearchHits } from "../later";
import { usePick, useStore, useWaitingCount } from "../store";
import { chooseTheme, nextTheme, useTheme, type Theme } from "../theme";
import { ListRow } from "./ListRow";

interface ConversationListProps {
  current: string | null;
  /** Somebody chose one: a drawer closes. */
  onChosen: () => void;
}

export function ConversationList({ current, onChosen }: ConversationListProps) {
  const store = useStore();
  const actions = usePageActions();
  const list = usePick((snapshot) => snapshot.list);
  const isCopy = usePick(({ copiedAt }) => copiedAt !== null);
  const [query, setQuery] = useState("");
  const field = useRef<HTMLInputElement>(null);
  useEffect(() => onAsked("search", () => field.current?.focus()), []);
  // A search belongs to this list: closing a drawer must not leave the list filtered behind it.
  useEffect(
    () => () => {
      store.filterConversations("");
      store.search("");
    },
    [store],
  );

  const look = (value: string): void => {
    setQuery(value);
    store.filterConversations(value);
    store.search(value);
  };

  return (
    <div className="list">
      <div className="list-head">
        <a
          className="list-name"
          href="/"
          onClick={(event) => {
            event.preventDefault();
            onChosen();
            actions.goHome();
          }}
        >
          <Mark />
          {text.name}
        </a>
        <Bell onChosen={onChosen} />
        <ThemeButton />
        <button type="button" className="icon-button" aria-label={text.keys.palette} title={`${text.keys.palette} (${commandKey}K)`} onClick={actions.showPalette}>
          <Icon name="keys" />
        </button>
      </div>
      <button
        type="button"
        className="button list-fresh"
        onClick={() => {
          onChosen();
          actions.goHome();
        }}
      >
        <Icon name="add" />
        {text.list.fresh}
      </button>
      <div className="list-search" role="search" aria-label={text.list.search}>
        <Icon name="search" />
        <input
          ref={field}
          className="bare-field"
          type="search"
          aria-label={text.list.searchLabel}
          placeholder={text.list.search}
          data-region-focus
          value={query}
          onChange={(event) => look(event.target.value)}
          onKeyDown={(event) => {
            if (event.key !== "Escape" || query === "") return;
            event.preventDefault();
            event.stopPropagation();
            look("");
          }}
        />
        {query !== "" && (
          <button type="button" className="icon-button small" aria-label={text.list.clear} onClick={() => look("")}>
            <Icon name="close" />
          </button>
        )}
      </div>
      <div className="list-scroll">
        {isCopy && <p className="list-note">{text.list.copy}</p>}
        {list.phase === "loading" && <p className="list-note" role="status">{text.list.loading}</p>}
        {list.phase === "failed" && <Failed message={list.error?.message} />}
        {list.phase === "ready" && list.byId.size === 0 && query === "" && (
          <div className="list-empty">
            <p className="list-empty-heading">{text.list.emptyHeading}</p>
            <p>{text.list.empty}</p>
          </div>
        )}
        {list.groups.map((group) => (
          <section key={group.name} aria-labelledby={`group-${group.name}`}>
            <h2 id={`group-${group.name}`} className="list-group">
              {text.list.groups[group.name]}
            </h2>
            <ul>
              {group.items.map((item) => (
                <ListRow
                  key={item.id}
                  item={item}
                  current={item.id === current}
                  unread={list.unread.has(item.id) && item.id !== current}
                  onChosen={onChosen}
                />
              ))}
            </ul>
          </section>
        ))}
        {query.trim() !== "" && (
          <Suspense fallback={null}>
            <SearchHits onChosen={onChosen} titles={list.groups.length > 0} />
          </Suspense>
        )}
        {list.hasMore && query === "" && (
          <button
            type="button"
            className="button quiet small list-more"
            disabled={list.loadingMore}
            onClick={() => void store.loadMoreConversations()}
          >
            {list.loadingMore ? text.list.loading : text.list.more}
          </button>
        )}
        {list.phase === "ready" && (list.byId.size > 0 || list.showArchived) && query === "" && (
          <button type="button" className="button quiet small list-more" onClick={() => store.showArchived(!list.showArchived)}>
            {list.showArchived ? text.list.hideArchived : text.list.showArchived}
          </button>
        )}
        {list.byId.size > 0 && query === "" && (
          <ScreenLink className="button quiet small list-more" to="/conversations" onFollow={onChosen}>
            {text.list.browse}
          </ScreenLink>
        )}
      </div>
    </div>
  );
}

function Failed({ message }: { message: string | undefined }) {
  const store = useStore();
  return (
    <div className="list-note" role="alert">
      <p>
        {text.list.failed} {message && said(message)}
      </p>
      <button type="button" className="button small" onClick={() => store.reconnectNow()}>
        {text.list.retry}
      </button>
    </div>
  );
}

/** How much waits for a person, and the way to it. */
function Bell({ onChosen }: { onChosen: () => void }) {
  const count = useWaitingCount();
  const label = text.list.waiting(count);
  return (
    <ScreenLink className="icon-button bell" to="/waiting" aria-label={label} title={label} onFollow={onChosen}>
      <Icon name="bell" />
      {count > 0 && <span className="bell-count tabular">{count}</span>}
    </ScreenLink>
  );
}

const THEME_ICON: Record<Theme, IconName> = { system: "system", light: "sun", dark: "moon" };

function ThemeButton() {
  const theme = useTheme();
  return (
    <button
      type="button"
      className="icon-button"
      aria-label={text.theme.label(theme)}
      title={text.theme.label(theme)}
      onClick={() => chooseTheme(nextTheme())}
    >
      <Icon name={THEME_ICON[theme]} />
    </button>
  );
}
