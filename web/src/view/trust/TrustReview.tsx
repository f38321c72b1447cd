/**
 * The settings that a folder has for an agent program, all of them, before they are trusted. What is trusted is what was shown:
 * the hash came with the text, and the server refuses it when the files have changed since.
 */

import { useCallback, useMemo, useState } from "react";
import { mayAllow } from "../../model/approvaltext";
import { keptOffKey, reviewLines } from "../../model/settingsreview";
import { said } from "../../sentences";
import { text } from "../../text";
import { trust } from "../../text.trust";
import { asApiError } from "../../transport/api";
import type { ProgramReview } from "../../transport/api.later";
import { localValues } from "../../transport/storage";
import { Dialog } from "../controls/Dialog";
import { visible } from "../controls/visible";
import { ExactLines, type Reading } from "../dock/Exact";
import { useFresh, useLaterApi } from "../frame/fresh";
import { Trouble } from "../frame/Trouble";
import "../../style/trust.css";

interface TrustReviewProps {
  project: string;
  program: string;
  onClose: () => void;
}

export default function TrustReview({ project, program, onClose }: TrustReviewProps) {
  const api = useLaterApi();
  const load = useCallback(() => api.reviewSettings(project, program), [api, project, program]);
  const { value, error, again } = useFresh(load);
  const name = value?.settings.name ?? program;
  return (
    <Dialog label={trust.heading(name)} className="confirm trust-review" onClose={onClose}>
      <h2>{trust.heading(name)}</h2>
      <p>{trust.lead(name)}</p>
      <p className="hint mono trust-folder">{visible(project)}</p>
      {error && <Trouble heading={trust.failed} error={error} onAgain={again} />}
      {!error && value === undefined && <p role="status">{trust.loading}</p>}
      {/* Other files are another review: nothing of it has been read yet. */}
      {value && <Decision key={value.settings.hash} project={project} review={value} onAgain={again} onClose={onClose} />}
    </Dialog>
  );
}

type Doing = "nothing" | "trusting" | { refused: string };

function Decision({ project, review: { settings, files }, onAgain, onClose }: { project: string; review: ProgramReview; onAgain: () => void; onClose: () => void }) {
  const api = useLaterApi();
  const [reading, setReading] = useState<Reading>({ rows: null, reached: 0 });
  const [doing, setDoing] = useState<Doing>("nothing");
  const parts = useMemo(() => [{ key: "files", lines: reviewLines(files) }], [files]);
  const { hash, program } = settings;
  const isRead = mayAllow(reading.rows, reading.reached);

  const decide = async (): Promise<void> => {
    if (hash === null || doing === "trusting" || !isRead) return;
    setDoing("trusting");
    try {
      await api.trustSettings(project, program, hash);
      onClose();
    } catch (cause) {
      const refused = asApiError(cause);
      setDoing({ refused: text.join(said(refused.message), refused.error.code === "conflict" && trust.changedMeanwhile) });
      onAgain();
    }
  };
  const keepOff = (): void => {
    localValues.set(keptOffKey(project, program), hash);
    onClose();
  };

  if (files.length === 0) {
    return (
      <>
        <p>{trust.nothing}</p>
        <Close onClose={onClose} />
      </>
    );
  }
  return (
    <>
      <ExactLines parts={parts} label={trust.contents} onReading={setReading} />
      {typeof doing === "object" && (
        <p className="is-bad" role="alert">
          {doing.refused}
        </p>
      )}
      {settings.trusted ? (
        <>
          <p className="hint">{trust.isTrusted}</p>
          <Close onClose={onClose} />
        </>
      ) : (
        <>
          <p className="hint" role="status">
            {hash === null ? trust.tooLarge : isRead ? "" : trust.unread}
          </p>
          <div className="confirm-bar">
            <button type="button" className="button" autoFocus onClick={keepOff}>
              {trust.keepOff}
            </button>
            <button type="button" className="button primary" aria-disabled={hash === null || !isRead || doing === "trusting"} onClick={() => void decide()}>
              {doing === "trusting" ? trust.trusting : trust.trust}
            </button>
          </div>
        </>
      )}
    </>
  );
}

function Close({ onClose }: { onClose: () => void }) {
  return (
    <div className="confirm-bar">
      <button type="button" className="button" autoFocus onClick={onClose}>
        {trust.close}
      </button>
    </div>
  );
}
