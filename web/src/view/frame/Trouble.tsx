/** What could not be had from the server: why, and a way to try again. */

import type { ApiError } from "../../transport/api";
import { said } from "../../sentences";
import { places } from "../../text.places";
import { Icon } from "../controls/Icon";

interface TroubleProps {
  heading: string;
  error: ApiError;
  onAgain: () => void;
}

export function Trouble({ heading, error, onAgain }: TroubleProps) {
  return (
    <section className="card is-trouble" role="alert">
      <h2 className="card-heading">
        <Icon name="warn" />
        {heading}
      </h2>
      <p>{error.status === 403 ? places.frame.forbidden : said(error.message)}</p>
      <div className="card-bar">
        <button type="button" className="button small" onClick={onAgain}>
          <Icon name="retry" />
          {places.frame.again}
        </button>
      </div>
    </section>
  );
}
