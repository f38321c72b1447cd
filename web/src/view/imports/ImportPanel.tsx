/** The histories that were found, each with what an import would do, how far it is, and what it came to. */

import { useSyncExternalStore } from "react";
import type { FoundHistory, LaterApi } from "../../transport/api.later";
import { bytes, count, day, number } from "../../measures";
import { said } from "../../sentences";
import { text } from "../../text";
import { places } from "../../text.places";
import { useMinutes } from "../controls/now";
import { useLaterApi } from "../frame/fresh";
import { Importer, type Job } from "./importer";
import { gain, sayTally } from "./tally";

let made: Importer | null = null;

function importerOf(api: LaterApi): Importer {
  return (made ??= new Importer(api));
}

export function ImportPanel({ found }: { found: readonly FoundHistory[] }) {
  const importer = importerOf(useLaterApi());
  const jobs = useSyncExternalStore(importer.subscribe, importer.current);
  const working = [...jobs.values()].some(isWorking);
  const untouched = found.filter(({ program }) => !jobs.has(program));
  const planned = found.filter(({ program }) => willGain(jobs.get(program)));
  const all = planned.reduce((sum, { program }) => sum + gain(jobs.get(program)!.tally), 0);

  return (
    <>
      <ul className="entries">
        {found.map((history) => (
          <HistoryRow key={history.program} history={history} job={jobs.get(history.program)} importer={importer} alone={planned.length === 1} />
        ))}
      </ul>
      <div className="card-bar">
        {working && (
          <>
            <button type="button" className="button small" onClick={() => importer.stop()}>
              {places.imports.stop}
            </button>
            <span className="hint">{places.imports.whileRunning}</span>
          </>
        )}
        {!working && untouched.length > 1 && (
          <button type="button" className="button small" onClick={() => void importer.look(untouched.map(({ program }) => program))}>
            {places.imports.lookAll}
          </button>
        )}
        {!working && planned.length > 1 && (
          <button type="button" className="button small primary" onClick={() => void importer.bring(planned.map(({ program }) => program))}>
            {places.imports.bringAll(number(all))}
          </button>
        )}
      </div>
    </>
  );
}

function isWorking({ phase }: Job): boolean {
  return phase === "waiting" || phase === "looking" || phase === "importing";
}

function willGain(job: Job | undefined): boolean {
  return job?.phase === "planned" && gain(job.tally) > 0;
}

interface HistoryRowProps {
  history: FoundHistory;
  job: Job | undefined;
  importer: Importer;
  /** No button for several speaks louder. */
  alone: boolean;
}

function HistoryRow({ history, job, importer, alone }: HistoryRowProps) {
  const now = useMinutes();
  const { program } = history;
  const name = places.imports.programs[program] ?? program;
  const many = count(history.count, "conversation");
  return (
    <li className="entry import-entry">
      <div className="entry-words">
        <p className="entry-title">{name}</p>
        <p className="hint tabular">{text.join(history.more ? places.imports.atLeast(many) : many, bytes(history.size_bytes), places.imports.newest(day(history.newest, now)))}</p>
        {job && <JobWords job={job} name={name} />}
      </div>
      <JobButton job={job} name={name} program={program} importer={importer} alone={alone} />
    </li>
  );
}

function JobWords({ job, name }: { job: Job; name: string }) {
  const { phase, tally, problem } = job;
  switch (phase) {
    case "waiting":
      return <p className="hint">{places.imports.waiting}</p>;
    case "looking":
    case "importing": {
      const doing = places.imports.progress[phase];
      return (
        <div className="import-progress">
          <progress aria-label={`${doing}: ${name}`} max={tally.of || 1} value={tally.done} />
          <p className="tabular is-live">{text.join(doing, tally.of > 0 && places.imports.of(number(tally.done), number(tally.of)))}</p>
          {phase === "importing" && <p className="hint tabular">{sayTally(tally, false)}</p>}
        </div>
      );
    }
    case "planned":
      return (
        <p className="import-result" role="status">
          {sayTally(tally, true)}
        </p>
      );
    case "done":
      return (
        <p className="import-result is-good" role="status">
          {sayTally(tally, false)}
        </p>
      );
    case "stopped":
      return (
        <p className="import-result is-wait" role="status">
          {text.join(places.imports.stopped, sayTally(tally, false))}
        </p>
      );
    case "failed":
      return (
        <div className="import-result" role="alert">
          <p className="is-bad">{places.imports.problem} {problem && said(problem)}</p>
          <p className="hint">{places.imports.problemHint}</p>
        </div>
      );
  }
}

interface JobButtonProps extends Omit<HistoryRowProps, "history"> {
  name: string;
  program: string;
}

function JobButton({ job, name, program, importer, alone }: JobButtonProps) {
  if (job && isWorking(job)) return null;
  if (job && willGain(job)) {
    const many = number(gain(job.tally));
    return (
      <button
        type="button"
        className={alone ? "button small primary" : "button small"}
        aria-label={places.imports.bringOne(name, many)}
        onClick={() => void importer.bring([program])}
      >
        {places.imports.bring(many)}
      </button>
    );
  }
  return (
    <button type="button" className="button small" aria-label={job ? places.imports.lookOneAgain(name) : places.imports.lookOne(name)} onClick={() => void importer.look([program])}>
      {job ? places.imports.again : places.imports.look}
    </button>
  );
}
