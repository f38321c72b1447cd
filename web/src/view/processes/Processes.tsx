/** What runs on the server for conversations: whose it is, what it does, and a way to end it. */

import { useCallback, useState } from "react";
import { asApiError } from "../../transport/api";
import type { ProcessEntry } from "../../transport/api.later";
import { elapsed } from "../../measures";
import { said } from "../../sentences";
import { text } from "../../text";
import { places } from "../../text.places";
import { Icon } from "../controls/Icon";
import { useSeconds } from "../controls/now";
import { visible } from "../controls/visible";
import { useFresh, useLaterApi } from "../frame/fresh";
import { ScreenFrame } from "../frame/ScreenFrame";
import { ScreenLink } from "../frame/ScreenLink";
import { Trouble } from "../frame/Trouble";
import { addressOf } from "../route";
import type { ScreenProps } from "../screens";
import { usePick } from "../store";
import { keyOf, refusalOf, stateOf } from "./say";

/** Fast enough to see a program come and go, seldom enough not to matter to the server. */
const REFRESH_MS = 3_000;

export default function Processes({ listShown, onShowList }: ScreenProps) {
  const api = useLaterApi();
  const load = useCallback(() => api.processes(), [api]);
  const { value, error, loading, again } = useFresh(load, REFRESH_MS);
  return (
    <ScreenFrame heading={text.screens.processes} lead={places.processTable.lead} listShown={listShown} onShowList={onShowList}>
      {error && <Trouble heading={places.processTable.failed} error={error} onAgain={again} />}
      {!value && loading && (
        <p className="hint" role="status">
          {places.processTable.loading}
        </p>
      )}
      {value?.length === 0 && (
        <section className="card is-empty">
          <h2 className="card-heading">{places.processTable.emptyHeading}</h2>
          <p className="card-words">{places.processTable.empty}</p>
        </section>
      )}
      {value && value.length > 0 && (
        <ul className="entries">
          {value.map((process) => (
            <ProcessRow key={keyOf(process)} process={process} onEnded={again} />
          ))}
        </ul>
      )}
      <p className="screen-foot">
        <ScreenLink to="/backends">{text.screens.backends}</ScreenLink>
      </p>
    </ScreenFrame>
  );
}

type Ending = "no" | "ending" | { refused: string };

function ProcessRow({ process, onEnded }: { process: ProcessEntry; onEnded: () => void }) {
  const api = useLaterApi();
  const now = useSeconds();
  const agent = usePick(({ agents }) => agents.items.find(({ id }) => id === process.agent)?.name) ?? process.agent;
  const [ending, setEnding] = useState<Ending>("no");
  const { pid, conversation } = process;
  const command = visible(process.command);

  const end = async (): Promise<void> => {
    if (pid === null) return;
    setEnding("ending");
    try {
      await api.endProcess(pid);
    } catch (cause) {
      setEnding({ refused: refusalOf(asApiError(cause)) });
    }
    // Also when it is refused: what is shown was not the latest then.
    onEnded();
  };

  return (
    <li className="entry">
      <span className={process.busy ? "entry-icon is-live" : "entry-icon"}>
        <Icon name={process.kind === "background" ? "terminal" : "spark"} />
      </span>
      <div className="entry-words">
        <p className="entry-title ellipsis">
          {conversation === null ? places.processTable.shared : <ScreenLink to={addressOf(conversation)}>{process.title || text.list.untitled}</ScreenLink>}
        </p>
        <p className="entry-command mono ellipsis" title={command}>
          {command}
        </p>
        <p className="hint tabular">
          {text.join(stateOf(process), agent, process.started_at !== null && places.processTable.started(elapsed(now - process.started_at)), pid !== null && places.processTable.pid(pid))}
        </p>
        {typeof ending === "object" && (
          <p className="entry-refusal is-bad" role="alert">
            {said(ending.refused)}
          </p>
        )}
      </div>
      {pid !== null && (
        <button
          type="button"
          className="button small"
          aria-label={ending === "ending" ? places.processTable.ending : places.processTable.endOf(command)}
          aria-disabled={ending === "ending"}
          onClick={ending === "ending" ? undefined : () => void end()}
        >
          {ending === "ending" ? places.processTable.ending : places.processTable.end}
        </button>
      )}
    </li>
  );
}
