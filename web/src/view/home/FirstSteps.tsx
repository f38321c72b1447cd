/** For somebody who has no conversation yet: what can be seen at once, played by the demo agent. */

import { places } from "../../text.places";
import { Icon } from "../controls/Icon";

/** Its id on the server; where somebody removed it there is nothing to play. */
export const DEMO = "demo";

interface FirstStepsProps {
  starting: boolean;
  onStart: (message: string) => void;
}

export function FirstSteps({ starting, onStart }: FirstStepsProps) {
  return (
    <section className="first-steps" aria-labelledby="first-steps">
      <h2 id="first-steps">{places.fresh.firstHeading}</h2>
      <p className="hint">{places.fresh.firstHint}</p>
      <ul>
        {places.fresh.firstSteps.map(({ icon, title, message }) => (
          <li key={message}>
            <button type="button" className="first-step" disabled={starting} onClick={() => onStart(message)}>
              <Icon name={icon} />
              <span>{title}</span>
            </button>
          </li>
        ))}
      </ul>
    </section>
  );
}
