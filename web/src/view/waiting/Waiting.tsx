/** The inbox: everything that waits for a person, in all conversations and at all depths, the oldest first, answered here. */

import { useCallback, useEffect, useRef, useState } from "react";
import type { WaitingRequest } from "../../protocol/wire";
import type { Request } from "../../protocol/events.gen";
import { ago, dayAndClock, exactTime } from "../../measures";
import { text } from "../../text";
import { asking } from "../../text.asking";
import { useAgentName } from "../agents";
import { Icon, type IconName } from "../controls/Icon";
import { useMinutes } from "../controls/now";
import { labelOf, RequestCard } from "../dock/RequestCard";
import { sayResolution } from "../dock/resolution";
import { whatIs } from "../dock/what";
import { useFresh, useLaterApi } from "../frame/fresh";
import { ScreenFrame } from "../frame/ScreenFrame";
import { ScreenLink } from "../frame/ScreenLink";
import { useMe } from "../me";
import { addressOf } from "../route";
import type { ScreenProps } from "../screens";
import { usePick, usePicked, useStore } from "../store";
import { entriesAfter, type Entry } from "./entries";
import { permission, switchNotices } from "./notify";
import "../../style/waiting.css";

/** Enough to see what became of yesterday's. */
const RECENT = 20;

export default function Waiting({ listShown, onShowList }: ScreenProps) {
  const store = useStore();
  const { phase, items } = usePick((snapshot) => snapshot.requests);
  useEffect(() => void store.loadRequests(), [store]);
  const entries = useEntries(items);
  const list = useRef<HTMLOListElement>(null);
  const [focused, setFocused] = useState<string | null>(null);
  const open = entries.filter(({ over }) => !over);
  const keyed = (open.find(({ item }) => item.request.id === focused) ?? open[0])?.item.request.id;

  const place = (item: WaitingRequest): string | null =>
    open.length < 2 ? null : asking.approval.place(open.findIndex((entry) => entry.item === item) + 1, open.length);

  // Whoever answered with a focused button goes on with the next, not from the top of the page.
  useEffect(() => {
    if (document.activeElement !== document.body) return;
    (list.current?.querySelector<HTMLElement>(".request") ?? list.current?.closest("main"))?.focus({ preventScroll: true });
  }, [entries]);

  return (
    <ScreenFrame heading={text.screens.waiting} lead={asking.waiting.lead} listShown={listShown} onShowList={onShowList}>
      {phase === "failed" && (
        <p className="hint" role="status">
          {asking.waiting.failed}
        </p>
      )}
      {phase === "loading" && (
        <p className="hint" role="status">
          {asking.waiting.loading}
        </p>
      )}
      {entries.length > 0 && (
        <ol ref={list} className="waiting">
          {entries.map(({ item, over }) => (
            <li key={item.request.id} onFocus={() => setFocused(item.request.id)}>
              {over ? <Over item={item} /> : <Open item={item} keyed={item.request.id === keyed} place={place(item)} />}
            </li>
          ))}
        </ol>
      )}
      {open.length === 0 && phase === "ready" && (
        <section className="card is-empty">
          <h2 className="card-heading">{asking.waiting.emptyHeading}</h2>
          <p className="card-words">{asking.waiting.empty}</p>
        </section>
      )}
      <Recent shown={entries} />
      <Notices />
    </ScreenFrame>
  );
}

function useEntries(items: readonly WaitingRequest[]): readonly Entry[] {
  const [state, setState] = useState(() => ({ items, entries: entriesAfter([], items) }));
  if (state.items === items) return state.entries;
  const next = { items, entries: entriesAfter(state.entries, items) };
  setState(next);
  return next.entries;
}

function Open({ item, keyed, place }: { item: WaitingRequest; keyed: boolean; place: string | null }) {
  const { conversation, request } = item;
  const name = useAgentName(item.agent);
  return (
    <section
      className={keyed && place !== null ? "request is-keyed" : "request"}
      aria-label={place === null ? labelOf(request) : `${labelOf(request)}, ${place}`}
      tabIndex={-1}
      data-region
    >
      <Where item={item} />
      <RequestCard id={conversation} request={request} agent={name} keyed={keyed} />
    </section>
  );
}

/** In which conversation, for whom, since when. */
function Where({ item: { conversation, title, root, parent_kind, request } }: { item: WaitingRequest }) {
  const now = useMinutes();
  const known = usePick(({ list }) => list.byId.get(conversation));
  const top = (parent_kind ?? known?.parent_kind) === "subagent" ? (root ?? known?.root ?? null) : null;
  const topTitle = usePick(({ list }) => (top === null ? undefined : list.byId.get(top)?.title));
  const since = ago(request.ts, now);
  return (
    <p className="waiting-where">
      <ScreenLink to={addressOf(conversation)}>{title || text.list.untitled}</ScreenLink>
      {top !== null && top !== conversation && (
        <span>
          {asking.waiting.worksFor} <ScreenLink to={addressOf(top)}>{topTitle || text.header.parentUnknown}</ScreenLink>
        </span>
      )}
      <time dateTime={new Date(request.ts).toISOString()} title={exactTime(request.ts)}>
        {since === "now" ? asking.waiting.sinceNow : asking.waiting.since(since)}
      </time>
    </p>
  );
}

/** Answered, here or elsewhere, or given up: what was decided, and by whom. */
function Over({ item }: { item: WaitingRequest }) {
  const store = useStore();
  const { conversation, request } = item;
  const ended = usePicked(conversation, ({ state }) => state.requests.find((known) => known.id === request.id && known.status !== "open"));
  useEffect(() => {
    store.openConversation(conversation);
    return () => store.closeConversation(conversation);
  }, [store, conversation]);
  return <Outcome item={item} ended={ended} fresh />;
}

interface OutcomeProps {
  item: WaitingRequest;
  ended: Request | undefined;
  /** It ended while it was looked at. */
  fresh?: boolean;
}

function Outcome({ item, ended, fresh = false }: OutcomeProps) {
  const me = useMe();
  const now = useMinutes();
  const name = useAgentName(item.agent);
  const { conversation, request } = item;
  const at = ended?.resolution?.ts;
  return (
    <div className="waiting-over">
      <Icon name={iconOf(ended)} />
      <p>
        <span className="waiting-what">{whatIs(request, name)}</span>
        <span role={fresh ? "status" : undefined} className={ended?.status === "expired" ? "is-wait" : undefined}>
          {ended ? sayResolution(ended, me) : asking.waiting.answered}
          {!fresh && at !== undefined && (
            <>
              {" · "}
              <time dateTime={new Date(at).toISOString()} title={exactTime(at)}>
                {dayAndClock(at, now)}
              </time>
            </>
          )}
        </span>
      </p>
      <ScreenLink to={addressOf(conversation)}>{item.title || text.list.untitled}</ScreenLink>
    </div>
  );
}

function iconOf(ended: Request | undefined): IconName {
  if (ended?.status === "expired") return "warn";
  return ended && (ended.status !== "answered" || ended.resolution?.verdict === "deny") ? "close" : "check";
}

/** What was answered, here or elsewhere, or missed, before this screen was opened. */
function Recent({ shown }: { shown: readonly Entry[] }) {
  const api = useLaterApi();
  const open = shown.filter(({ over }) => !over).length;
  const load = useCallback(() => api.recentRequests(RECENT), [api, open]);
  const { value } = useFresh(load);
  const here = new Set(shown.map(({ item }) => item.request.id));
  const items = (value ?? []).filter(({ request }) => !here.has(request.id));
  if (items.length === 0) return null;
  return (
    <section className="waiting-recent" aria-labelledby="waiting-recent">
      <h2 id="waiting-recent">{asking.waiting.recent}</h2>
      <ul>
        {items.map((item) => (
          <li key={item.request.id}>
            <Outcome item={item} ended={item.request} />
          </li>
        ))}
      </ul>
    </section>
  );
}

/** The switch of system notices, and why there are none. */
function Notices() {
  const [now, setNow] = useState(permission);
  const trouble = now === "denied" ? asking.waiting.notifyDenied : now === "missing" ? asking.waiting.notifyMissing : null;
  return (
    <div className="waiting-notices">
      <label className="option">
        <input
          type="checkbox"
          checked={now === "on"}
          disabled={trouble !== null}
          onChange={(event) => void switchNotices(event.target.checked).then(setNow)}
        />
        <span>
          <span className="option-label">{asking.waiting.notify}</span>
          <span className="option-more">{trouble ?? asking.waiting.notifyHint}</span>
        </span>
      </label>
      <p className="hint">
        <ScreenLink to="/device">{asking.waiting.notifyMore}</ScreenLink>
      </p>
    </div>
  );
}
