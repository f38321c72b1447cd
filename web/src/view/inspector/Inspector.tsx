/**
 * The event inspector: a conversation's log as it is stored, and the conversation as it stood at any event of it. Live until
 * somebody looks at a moment.
 */

import { useDeferredValue, useEffect, useMemo, useState, type ReactNode } from "react";
import type { Entry, EventLog } from "../../model/eventlog";
import { exactTime } from "../../measures";
import { text } from "../../text";
import { clockSeconds, inspector as words } from "../../text.inspector";
import { Copy } from "../controls/Copy";
import { Icon } from "../controls/Icon";
import { useIsNarrow } from "../controls/narrow";
import { useSeconds } from "../controls/now";
import { visible } from "../controls/visible";
import { useQuery, withQuery } from "../frame/query";
import { ScreenFrame } from "../frame/ScreenFrame";
import { ScreenLink } from "../frame/ScreenLink";
import { Trouble } from "../frame/Trouble";
import { HeaderFrame } from "../header/Header";
import { addressOf, goTo } from "../route";
import type { ScreenProps } from "../screens";
import { usePick } from "../store";
import { useLog, type Reading } from "./log";
import { LogList } from "./LogList";
import { Moment } from "./Moment";
import "../../style/inspector.css";

/** The address follows the slider once it rests. */
const REST_MS = 400;

type Pane = "log" | "transcript" | "state" | "event";

export default function Inspector({ rest, listShown, onShowList }: ScreenProps) {
  if (/^[\w-]{1,128}$/.test(rest)) return <Opened key={rest} id={rest} listShown={listShown} onShowList={onShowList} />;
  return (
    <ScreenFrame heading={words.name} listShown={listShown} onShowList={onShowList}>
      <section className="card is-empty">
        <p className="card-words">{words.empty}</p>
        <div className="card-bar">
          <ScreenLink to="/conversations" className="button small">
            {text.list.label}
          </ScreenLink>
        </div>
      </section>
    </ScreenFrame>
  );
}

function Opened({ id, listShown, onShowList }: Omit<ScreenProps, "rest"> & { id: string }) {
  const narrow = useIsNarrow();
  const title = usePick(({ list }) => list.byId.get(id)?.title);
  const reading = useLog(id);
  const { log, version } = reading;
  const [type, setType] = useState("");
  const [at, setAt] = useAt();
  const [pane, setPane] = useState<Pane>("transcript");
  const shown: Pane = pane === "log" && !narrow ? "transcript" : pane;

  const rows = useMemo(() => log.rows(matching(type)), [log, version, type]);
  const seq = at === null ? log.seq : Math.min(at, log.seq);
  // A view far from the last one takes a while to fold; the slider does not wait for it.
  const folding = useDeferredValue(seq);
  const state = useMemo(() => (folding === log.seq ? log.state : log.at(folding)), [log, version, folding]);
  const place = log.entries.findLastIndex((entry) => entry.seq <= seq);
  const entry = log.entries[place];

  if (reading.phase === "failed" && reading.error) {
    const gone = reading.error.status === 404 || reading.error.status === 410;
    return (
      <ScreenFrame heading={words.name} listShown={listShown} onShowList={onShowList}>
        <Trouble heading={gone ? words.missing : words.failed} error={reading.error} onAgain={() => location.reload()} />
      </ScreenFrame>
    );
  }
  return (
    <div className="screen">
      <HeaderFrame listShown={listShown} onShowList={onShowList}>
        <div className="bar-title">
          <h1 className="screen-heading ellipsis">{words.name}</h1>
          <p className="bar-meta ellipsis">
            <ScreenLink to={addressOf(id)}>{title || text.list.untitled}</ScreenLink>
          </p>
        </div>
        <Condition reading={reading} at={at === null ? null : seq} />
      </HeaderFrame>
      <main className="inspector" aria-label={words.name}>
        <div className="inspector-bar">
          <Types log={log} version={version} type={type} onChoose={setType} />
          <Copy label={words.copyShown} content={() => rows.flatMap((row) => (row.kind === "entry" ? row.entry.line : [])).join("\n")} />
          <div className="inspector-panes" role="group" aria-label={words.showing}>
            {(["log", "transcript", "state", "event"] as const)
              .filter((one) => narrow || one !== "log")
              .map((one) => (
                <button key={one} type="button" className="button small quiet" aria-pressed={one === shown} onClick={() => setPane(one)}>
                  {words.panes[one]}
                </button>
              ))}
          </div>
        </div>
        {reading.phase === "full" && (
          <p className="inspector-note" role="status">
            {words.states.full}
          </p>
        )}
        <div className="inspector-body">
          {(!narrow || shown === "log") && <LogList rows={rows} seq={seq} live={at === null} onChoose={setAt} />}
          {shown === "transcript" && (
            <div className="inspector-pane">
              <Moment id={id} state={state} live={at === null} />
            </div>
          )}
          {shown === "state" && (
            <Json label={words.panes.state} copy={words.copyState} value={() => JSON.stringify({ ...state, messages: state.messages }, null, 2)} on={state} />
          )}
          {shown === "event" &&
            (entry ? (
              <Json label={words.panes.event} copy={words.copyEvent} value={() => pretty(entry.line)} exact={() => entry.line} on={entry}>
                {text.join(`#${entry.seq}`, entry.type, exactTime(entry.ts))}
              </Json>
            ) : (
              <p className="inspector-empty">{words.noEvent}</p>
            ))}
        </div>
        <Slider log={log} seq={seq} place={place} entry={entry} live={at === null} onMove={setAt} />
      </main>
    </div>
  );
}

/** The moment, which the address names too: null is the latest. */
function useAt(): [number | null, (seq: number | null) => void] {
  const asked = Number.parseInt(useQuery("at") ?? "", 10);
  const [at, setAt] = useState<number | null>(Number.isSafeInteger(asked) && asked > 0 ? asked : null);
  useEffect(() => {
    const timer = setTimeout(() => {
      const address = withQuery(location.pathname, { at: at === null ? null : String(at) });
      if (address !== location.pathname + location.search) goTo(address, true);
    }, REST_MS);
    return () => clearTimeout(timer);
  }, [at]);
  return [at, setAt];
}

/** A type of its own, or all whose names begin alike. */
function matching(type: string): (known: string) => boolean {
  if (type === "") return () => true;
  return type.endsWith(".") ? (known) => known.startsWith(type) : (known) => known === type;
}

function Condition({ reading: { phase, log, retryAt }, at }: { reading: Reading; at: number | null }) {
  const now = useSeconds();
  const tone = phase === "lost" ? "bad" : at !== null ? "wait" : "live";
  const said =
    phase === "lost"
      ? words.states.lost(Math.max(0, Math.ceil((retryAt - now) / 1000)))
      : phase === "loading"
        ? words.states.loading(log.entries.length)
        : at !== null
          ? words.states.paused(at, log.seq)
          : words.states.live;
  return (
    <p className={`bar-status is-${tone}`} role="status">
      <span className={`dot is-${tone}`} />
      <span className="inspector-condition tabular">{said}</span>
    </p>
  );
}

interface TypesProps {
  log: EventLog;
  version: number;
  type: string;
  onChoose: (type: string) => void;
}

function Types({ log, version, type, onChoose }: TypesProps) {
  const groups = useMemo(() => {
    const known = new Map<string, [string, number][]>();
    for (const [name, count] of [...log.types].toSorted(([one], [other]) => one.localeCompare(other))) {
      const prefix = `${name.split(".")[0]}.`;
      known.set(prefix, [...(known.get(prefix) ?? []), [name, count]]);
    }
    return [...known];
  }, [log, version]);
  return (
    <select className="field inspector-types" aria-label={words.filter} value={type} onChange={(event) => onChoose(event.target.value)}>
      <option value="">{words.all(log.entries.length)}</option>
      {groups.map(([prefix, members]) => (
        <optgroup key={prefix} label={visible(prefix.slice(0, -1))}>
          {members.length > 1 && <option value={prefix}>{words.group(visible(prefix.slice(0, -1)))}</option>}
          {members.map(([name, count]) => (
            <option key={name} value={name}>
              {words.typed(visible(name), count)}
            </option>
          ))}
        </optgroup>
      ))}
    </select>
  );
}

interface JsonProps {
  label: string;
  copy: string;
  /** Made only when `on` changes. */
  value: () => string;
  /** What is copied, where it is not what is shown. */
  exact?: () => string;
  on: unknown;
  children?: ReactNode;
}

function Json({ label, copy, value, exact = value, on, children }: JsonProps) {
  const shown = useMemo(value, [on]);
  return (
    <section className="inspector-pane" aria-label={label}>
      <div className="inspector-summary">
        <span className="ellipsis">{children}</span>
        <Copy label={copy} content={exact} />
      </div>
      <pre className="inspector-json mono" tabIndex={0} data-region>
        {visible(shown)}
      </pre>
    </section>
  );
}

function pretty(line: string): string {
  try {
    return JSON.stringify(JSON.parse(line), null, 2);
  } catch {
    return line;
  }
}

interface SliderProps {
  log: EventLog;
  seq: number;
  place: number;
  entry: Entry | undefined;
  live: boolean;
  onMove: (seq: number | null) => void;
}

function Slider({ log, seq, place, entry, live, onMove }: SliderProps) {
  const last = log.entries.length - 1;
  const moveTo = (to: number): void => {
    const next = log.entries[Math.min(last, Math.max(0, to))];
    if (next) onMove(next.seq);
  };
  return (
    <div className="inspector-slider" role="group" aria-label={words.slider} data-region tabIndex={-1}>
      <button type="button" className="icon-button" aria-label={words.earlier} title={words.earlier} disabled={place <= 0} onClick={() => moveTo(place - 1)}>
        <Icon name="back" />
      </button>
      <input
        type="range"
        min={0}
        max={Math.max(0, last)}
        step={1}
        value={Math.max(0, place)}
        disabled={last < 0}
        aria-label={words.slider}
        aria-valuetext={entry ? words.moment(seq, log.seq, entry.type, clockSeconds(entry.ts)) : words.noEvent}
        data-region-focus
        onChange={(event) => moveTo(Number(event.target.value))}
      />
      <button type="button" className="icon-button" aria-label={words.later} title={words.later} disabled={place >= last} onClick={() => moveTo(place + 1)}>
        <Icon name="chevron" />
      </button>
      <span className="inspector-moment-words tabular">{entry ? `${seq} / ${log.seq}` : ""}</span>
      <button type="button" className="button small" aria-pressed={live} disabled={last < 0} onClick={() => onMove(live ? seq : null)}>
        <Icon name={live ? "hold" : "down"} />
        {live ? words.hold : words.goLive}
      </button>
    </div>
  );
}
