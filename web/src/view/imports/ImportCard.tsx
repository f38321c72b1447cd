/** On the home screen of a server that is new: what other programs left on its machine. Nothing when they left nothing. */

import { useCallback } from "react";
import { places } from "../../text.places";
import { Icon } from "../controls/Icon";
import { useFresh, useLaterApi } from "../frame/fresh";
import { ImportPanel } from "./ImportPanel";
import "../../style/screens.css";

export default function ImportCard({ onDismiss }: { onDismiss: () => void }) {
  const api = useLaterApi();
  const load = useCallback(() => api.foundHistories(), [api]);
  const { value } = useFresh(load);
  if (!value || value.length === 0) return null;
  return (
    <section className="card import-card" aria-labelledby="import-heading">
      <div className="card-head">
        <h2 id="import-heading" className="card-heading">
          {places.imports.heading}
        </h2>
        <button type="button" className="icon-button" aria-label={places.imports.dismiss} title={`${places.imports.dismiss}. ${places.imports.dismissHint}`} onClick={onDismiss}>
          <Icon name="close" />
        </button>
      </div>
      <p className="card-words">{places.imports.lead}</p>
      <ImportPanel found={value} />
    </section>
  );
}
