/** What agents left running here: command, time, and a way to stop it. Its end is told in the transcript. */

import { useState } from "react";
import type { Process } from "../../protocol/events.gen";
import { elapsed } from "../../measures";
import { work } from "../../text.work";
import { Icon } from "../controls/Icon";
import { useSeconds } from "../controls/now";
import { visible } from "../controls/visible";
import { usePicked, useStore } from "../store";

const NONE: readonly Process[] = [];

export default function ProcessStrip({ id }: { id: string }) {
  const processes = usePicked(id, ({ state }) => state.processes) ?? NONE;
  const running = processes.filter((process) => process.running);
  if (running.length === 0) return null;
  return (
    <section className="queue processes" aria-label={work.processes.label} data-region tabIndex={-1}>
      <ul className="queue-list">
        {running.map((process) => (
          <Running key={process.id} id={id} process={process} />
        ))}
      </ul>
    </section>
  );
}

function Running({ id, process }: { id: string; process: Process }) {
  const store = useStore();
  const now = useSeconds();
  const [stopping, setStopping] = useState(false);
  const command = visible(process.command);

  const stop = (): void => {
    setStopping(true);
    const asked = store.command(id, { type: "stop_process", process: process.id });
    // The refusal is shown with all others; the button is there again.
    store.answered(asked).catch(() => setStopping(false));
  };

  return (
    <li className="queue-item">
      <span className="tool-icon alive">
        <Icon name="terminal" />
      </span>
      <span className="queue-text mono ellipsis" title={command}>
        {command}
      </span>
      <span className="queue-state tabular">
        <span className="sr-only">{work.processes.running} </span>
        {process.started_at !== null && elapsed(now - process.started_at)}
      </span>
      <button type="button" className="button quiet small" aria-label={work.processes.stop(command)} disabled={stopping} onClick={stop}>
        <Icon name="stop" />
        {stopping ? work.processes.stopping : work.processes.stopShort}
      </button>
    </li>
  );
}
