/** One quiet line above the composer: the folder has settings for this agent's program, and they are off. */

import { lazy, Suspense, useCallback, useState } from "react";
import { keptOffKey } from "../../model/settingsreview";
import { trust } from "../../text.trust";
import { localValues } from "../../transport/storage";
import { Icon } from "../controls/Icon";
import { useFresh, useLaterApi } from "../frame/fresh";
import { usePick, usePicked } from "../store";
import "../../style/trust.css";

const TrustReview = lazy(() => import("./TrustReview"));

export default function TrustLine({ id }: { id: string }) {
  const isOwner = usePick(({ session }) => session.session?.roles.includes("admin") === true);
  const project = usePicked(id, ({ state }) => state.project);
  const agent = usePicked(id, ({ state }) => state.agent);
  // Only a person's token may trust: to others the transcript says what is off.
  return isOwner && project && agent ? <Off id={id} project={project} agent={agent} /> : null;
}

function Off({ id, project, agent }: { id: string; project: string; agent: string }) {
  const api = useLaterApi();
  // A turn may have changed the files.
  const turn = usePicked(id, ({ state }) => state.last_turn?.id);
  const load = useCallback(() => api.programSettings(project, agent), [api, project, agent, turn]);
  const { value, again } = useFresh(load);
  const [reviewing, setReviewing] = useState(false);
  const found = value?.find(({ trusted, paths }) => !trusted && paths.length > 0);
  const isKeptOff = found !== undefined && found.hash !== null && localValues.get(keptOffKey(project, found.program)) === found.hash;
  const close = (): void => {
    setReviewing(false);
    again();
  };
  if (found === undefined || (isKeptOff && !reviewing)) return null;
  return (
    <section className="trust-line" aria-label={trust.label} data-region tabIndex={-1}>
      <Icon name="shield" />
      <span className="trust-words">
        {trust.off}: {found.summary || trust.files(found.paths.length)}
      </span>
      <span aria-hidden="true">·</span>
      <button type="button" className="link-button" onClick={() => setReviewing(true)}>
        {trust.review}
      </button>
      {reviewing && (
        <Suspense fallback={null}>
          <TrustReview project={project} program={found.program} onClose={close} />
        </Suspense>
      )}
    </section>
  );
}
