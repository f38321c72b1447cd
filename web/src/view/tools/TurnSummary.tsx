/** The work of a turn in one line, which opens to the rows below it. Whatever did not go well is said in the line itself. */

import type { TurnWorkRow } from "../../model/rows";
import { Icon } from "../controls/Icon";
import { useStore } from "../store";
import { sayWork } from "./sayWork";

export default function TurnSummary({ row }: { row: TurnWorkRow }) {
  const store = useStore();
  const said = sayWork(row);
  return (
    <div className={row.live ? "tool turn-work is-live" : "tool turn-work"}>
      <button type="button" className="tool-line" aria-expanded={row.open} onClick={() => store.setDisclosed(row.key, !row.open)}>
        <span className={row.live ? "tool-icon alive" : "tool-icon"}>
          <Icon name={row.live ? "spark" : "list"} />
        </span>
        <span className="turn-work-what">{said.what}</span>
        <span className="tool-chevron">
          <Icon name="chevron" />
        </span>
        <span className="tool-result tabular">
          {said.trouble && <span className="turn-work-trouble">{said.trouble} · </span>}
          {said.size}
        </span>
      </button>
    </div>
  );
}
