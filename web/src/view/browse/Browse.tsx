/** The session browser: every conversation with its state, by agent, folder and state; one looked into beside the list. */

import { useCallback, useEffect, useMemo, useRef, useState, type KeyboardEvent } from "react";
import type { Listing } from "../../protocol/events.gen";
import type { ListPage } from "../../protocol/wire";
import { merged } from "../../model/listing";
import { ago, exactTime, startOfDay } from "../../measures";
import { text } from "../../text";
import { browse as words } from "../../text.browse";
import { useAgentName } from "../agents";
import { Icon } from "../controls/Icon";
import { useIsNarrow } from "../controls/narrow";
import { useMinutes } from "../controls/now";
import { useFresh, useLaterApi } from "../frame/fresh";
import { ScreenLink } from "../frame/ScreenLink";
import { Trouble } from "../frame/Trouble";
import { HeaderFrame } from "../header/Header";
import { addressOf, goTo, inThisTab } from "../route";
import type { ScreenProps } from "../screens";
import { useMayWrite, usePick } from "../store";
import { shortPath } from "../tools/say";
import { Preview } from "./Preview";
import { choices, groupsOf, NO_FILTERS, stateOf, type Filters, type Wanted } from "./rows";
import "../../style/screens.css";
import "../../style/browse.css";

/** The most a page may hold. */
const PAGE = 500;
/** A pause in typing. */
const TYPING_MS = 200;

const TONES = { idle: null, running: "live", waiting: "wait", failed: "bad", archived: null } as const;

export default function Browse({ rest, listShown, onShowList }: ScreenProps) {
  const narrow = useIsNarrow();
  const chosen = /^[\w-]{1,128}$/.test(rest) ? rest : null;
  const [filters, setFilters] = useState<Filters>(NO_FILTERS);
  const known = useConversations(filters);
  const now = useMinutes();
  const asking = useAsking();
  const today = startOfDay(now);
  const groups = useMemo(
    () => groupsOf(known.rows.values(), filters, { today, asking, found: known.found }),
    [known.rows, known.found, filters, today, asking],
  );
  const mayWrite = useMayWrite();
  const main = useRef<HTMLElement>(null);
  useEffect(() => main.current?.focus({ preventScroll: true }), []);
  const change = (part: Partial<Filters>): void => setFilters((before) => ({ ...before, ...part }));
  const isFiltered = filters !== NO_FILTERS && JSON.stringify(filters) !== JSON.stringify(NO_FILTERS);
  const showsList = !narrow || chosen === null;

  return (
    <div className="screen">
      <HeaderFrame listShown={listShown} onShowList={onShowList}>
        {!showsList && (
          <ScreenLink to="/conversations" className="icon-button">
            <Icon name="back" />
            <span className="sr-only">{words.back}</span>
          </ScreenLink>
        )}
        <div className="bar-title">
          <h1 className="screen-heading ellipsis">{words.heading}</h1>
        </div>
      </HeaderFrame>
      <main ref={main} className={chosen === null ? "browse" : "browse has-preview"} aria-label={words.heading} data-region tabIndex={-1}>
        {showsList && (
          <div className="browse-side">
            <FilterBar filters={filters} rows={known.rows} onChange={change} />
            <div className="browse-list" onKeyDown={walk}>
              {known.copied && <p className="browse-note">{words.copy}</p>}
              {known.error && !known.copied && <Trouble heading={words.failed} error={known.error} onAgain={known.again} />}
              {known.loading && known.rows.size === 0 && (
                <p className="hint" role="status">
                  {words.loading}
                </p>
              )}
              {groups.map((group) => (
                <section key={group.name} aria-labelledby={`browse-${group.name}`}>
                  <h2 id={`browse-${group.name}`} className="list-group">
                    {words.groups[group.name]}
                  </h2>
                  <ul>
                    {group.items.map((row) => (
                      <Row key={row.id} row={row} asking={asking} current={row.id === chosen} now={now} />
                    ))}
                  </ul>
                </section>
              ))}
              {groups.length === 0 && !known.loading && !known.error && <Empty filtered={isFiltered || known.rows.size > 0} mayBegin={mayWrite} onClear={() => setFilters(NO_FILTERS)} />}
              {known.more && (
                <button type="button" className="button quiet small list-more" disabled={known.loading} onClick={known.loadMore}>
                  {words.more}
                </button>
              )}
            </div>
          </div>
        )}
        {chosen !== null ? (
          <Preview key={chosen} id={chosen} row={known.rows.get(chosen)} asking={asking} readOnly={known.copied || !mayWrite} />
        ) : (
          !narrow && groups.length > 0 && <p className="browse-choose">{words.choose}</p>
        )}
      </main>
    </div>
  );
}

/** What the server lists, what came since, and what its search finds. */
function useConversations(filters: Filters) {
  const api = useLaterApi();
  const live = usePick(({ list }) => list.byId);
  const copied = usePick(({ session }) => session.phase !== "signed_in");
  const archived = filters.state === "archived";
  const load = useCallback(() => api.conversations({ limit: PAGE, archived }), [api, archived]);
  const first = useFresh<ListPage>(load);
  const [later, setLater] = useState<readonly Listing[]>([]);
  const [cursor, setCursor] = useState<string | null>(null);
  const [found, setFound] = useState<{ words: string; items: readonly Listing[] }>({ words: "", items: [] });

  useEffect(() => setCursor(first.value?.next_cursor ?? null), [first.value]);
  const query = filters.words.trim();
  useEffect(() => {
    if (query === "") return;
    const timer = setTimeout(() => {
      api.conversations({ limit: 50, query, archived }).then(
        ({ items }) => setFound({ words: query, items }),
        // What is at hand is filtered already.
        () => undefined,
      );
    }, TYPING_MS);
    return () => clearTimeout(timer);
  }, [api, query, archived]);

  const gone = useGone(live, first.again);
  const rows = useMemo(() => {
    const listed = [...(first.value?.items ?? []), ...later, ...found.items].filter(({ id }) => !gone.has(id));
    return merged(merged(new Map(), listed), [...live.values()]);
  }, [first.value, later, found, live, gone]);
  const hits = useMemo(() => new Set(found.words === query && query !== "" ? found.items.map(({ id }) => id) : []), [found, query]);
  const loadMore = (): void => {
    if (cursor === null) return;
    void api.conversations({ limit: PAGE, archived, cursor }).then(
      (page) => {
        setLater((before) => [...before, ...page.items]);
        setCursor(page.next_cursor);
      },
      () => undefined,
    );
  };
  return { rows, found: hits, loading: first.loading, error: first.error, again: first.again, more: cursor !== null, loadMore, copied };
}

/** Nobody deletes so many at once: the list was begun anew, and the server knows what is in it. */
const RESET_ROWS = 20;

/** What was listed and is so no more: deleted, here or elsewhere. */
function useGone(live: ReadonlyMap<string, Listing>, again: () => void): ReadonlySet<string> {
  const [known, setKnown] = useState({ live, gone: new Set<string>() });
  let { gone } = known;
  if (known.live !== live) {
    const lost = [...known.live.keys()].filter((id) => !live.has(id));
    gone = lost.length > RESET_ROWS ? new Set() : new Set([...known.gone, ...lost].filter((id) => !live.has(id)));
    setKnown({ live, gone });
  }
  useEffect(() => {
    if (gone.size > 0) again();
  }, [gone.size, again]);
  return gone;
}

/** Conversations whose subagents wait for a person. */
function useAsking(): ReadonlySet<string> {
  const items = usePick(({ requests }) => requests.items);
  return useMemo(() => new Set(items.flatMap(({ root, parent_kind }) => (parent_kind === "subagent" && root ? [root] : []))), [items]);
}

interface FilterBarProps {
  filters: Filters;
  rows: ReadonlyMap<string, Listing>;
  onChange: (change: Partial<Filters>) => void;
}

function FilterBar({ filters, rows, onChange }: FilterBarProps) {
  const agents = useMemo(() => choices(rows.values(), ({ agent }) => agent), [rows]);
  const folders = useMemo(() => choices(rows.values(), ({ project }) => project), [rows]);
  return (
    <div className="browse-filters" role="search" aria-label={words.filters}>
      <input
        type="search"
        className="field"
        aria-label={words.search}
        placeholder={words.search}
        value={filters.words}
        onChange={(event) => onChange({ words: event.target.value })}
      />
      <select className="field" aria-label={words.state} value={filters.state} onChange={(event) => onChange({ state: event.target.value as Wanted })}>
        {Object.entries(words.states).map(([state, name]) => (
          <option key={state} value={state}>
            {name}
          </option>
        ))}
      </select>
      <select className="field" aria-label={words.agent} value={filters.agent} onChange={(event) => onChange({ agent: event.target.value })}>
        <option value="">{words.anyAgent}</option>
        {agents.map((agent) => (
          <AgentOption key={agent} id={agent} />
        ))}
      </select>
      <select className="field" aria-label={words.folder} value={filters.folder} onChange={(event) => onChange({ folder: event.target.value })}>
        <option value="">{words.anyFolder}</option>
        {folders.map((folder) => (
          <option key={folder} value={folder}>
            {shortPath(folder, 2)}
          </option>
        ))}
      </select>
    </div>
  );
}

function AgentOption({ id }: { id: string }) {
  return <option value={id}>{useAgentName(id)}</option>;
}

interface RowProps {
  row: Listing;
  asking: ReadonlySet<string>;
  current: boolean;
  now: number;
}

function Row({ row, asking, current, now }: RowProps) {
  const state = stateOf(row, asking);
  const tone = TONES[state];
  const agent = useAgentName(row.agent);
  return (
    <li className={current ? "list-row current" : "list-row"}>
      <a
        className="list-link"
        href={addressOf(row.id)}
        aria-current={current ? "true" : undefined}
        data-id={row.id}
        onClick={inThisTab(() => {
          // With a key held it is the browser's: a new tab with the conversation itself.
          goTo(`/conversations/${row.id}`);
        })}
        onDoubleClick={() => goTo(addressOf(row.id))}
      >
        <span className="list-top">
          {tone && <span className={`dot is-${tone}`} />}
          {state === "archived" && <Icon name="archive" />}
          <span className="list-title ellipsis">{row.title || text.list.untitled}</span>
          <time className="list-time tabular" title={exactTime(row.updated_at)}>
            {ago(row.updated_at, now)}
          </time>
        </span>
        <span className="list-bottom">
          {state === "idle" ? (
            <span className="list-line ellipsis">{row.last_line || words.row.idle}</span>
          ) : (
            <span className={tone ? `list-state is-${tone} ellipsis` : "list-line ellipsis"}>{words.row[state]}</span>
          )}
          <span className="badge">{agent}</span>
        </span>
      </a>
    </li>
  );
}

/** Up and down go from row to row and show each; Enter, which is a press on the link, shows it too. */
function walk(event: KeyboardEvent<HTMLElement>): void {
  const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
  if (step === undefined) return;
  const rows = [...event.currentTarget.querySelectorAll<HTMLElement>("a[data-id]")];
  const at = rows.indexOf(document.activeElement as HTMLElement);
  const next = rows[at + step];
  if (at < 0 || !next) return;
  event.preventDefault();
  next.focus();
  if (!matchMedia("(max-width: 52rem)").matches) goTo(`/conversations/${next.dataset["id"]}`, true);
}

function Empty({ filtered, mayBegin, onClear }: { filtered: boolean; mayBegin: boolean; onClear: () => void }) {
  return (
    <section className="card is-empty">
      <h2 className="card-heading">{filtered ? words.noneHeading : words.emptyHeading}</h2>
      <p className="card-words">{filtered ? words.none : words.empty}</p>
      <div className="card-bar">
        {filtered ? (
          <button type="button" className="button small" onClick={onClear}>
            {words.clear}
          </button>
        ) : (
          mayBegin && (
            <ScreenLink to="/" className="button small">
              {words.fresh}
            </ScreenLink>
          )
        )}
      </div>
    </section>
  );
}
