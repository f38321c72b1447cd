/**
 * Changed files, one line each; a line opens to what changed in the file. A change too large for its event is fetched when
 * it is opened. Used by tool calls, by the summary of a turn and by the list of the whole conversation.
 */

import { useEffect, useState } from "react";
import { byFile, type ChangedFile } from "../../model/changes";
import type { FileChange } from "../../protocol/events.gen";
import { text } from "../../text";
import { later } from "../../text.later";
import { blobUrl } from "../../transport/api";
import { Copy } from "../controls/Copy";
import { Icon } from "../controls/Icon";
import { visible } from "../controls/visible";
import { useDisclosed } from "../store";
import { DiffView } from "./DiffView";
import { parseUnified } from "./lines";

interface ChangesProps {
  /** Where it stands: what is open is remembered by it. */
  place: string;
  changes: readonly FileChange[];
}

export function Changes({ place, changes }: ChangesProps) {
  const files = byFile(changes);
  // A single file is what one came to see.
  return (
    <ul className="changes">
      {files.map((file) => (
        <OneFile key={file.path} place={`${place}:${file.path}`} file={file} openAtFirst={files.length === 1} />
      ))}
    </ul>
  );
}

function OneFile({ place, file, openAtFirst }: { place: string; file: ChangedFile; openAtFirst: boolean }) {
  const [open, setOpen] = useDisclosed(place, openAtFirst);
  const { kind } = text.changes;
  const path = visible(file.path);
  return (
    <li className="change">
      <button
        type="button"
        className="change-line"
        aria-expanded={open}
        onClick={() => setOpen(!open)}
      >
        <span className="tool-chevron">
          <Icon name="chevron" />
        </span>
        <span className={file.kind === "deleted" ? "change-path mono is-gone" : "change-path mono"}>
          <bdi>{path}</bdi>
        </span>
        {kind[file.kind] && <span className="change-kind">{kind[file.kind]}</span>}
        <Stat added={file.additions} removed={file.deletions} />
      </button>
      {open && <Lines file={file} />}
    </li>
  );
}

export function Stat({ added, removed }: { added: number; removed: number }) {
  return (
    <span className="stat tabular">
      {added > 0 && <span className="is-good">{text.tool.added(added)}</span>}
      {removed > 0 && <span className="is-bad">{text.tool.removed(removed)}</span>}
    </span>
  );
}

function Lines({ file }: { file: ChangedFile }) {
  if (file.parts.length === 0) return <p className="tool-none change-none">{later.changes.none}</p>;
  return (
    <div className="change-parts">
      {file.parts.map((part, at) =>
        part.diff !== null ? (
          <Diff key={at} path={file.path} diff={part.diff} />
        ) : (
          part.blob && <FetchedDiff key={at} path={file.path} blob={part.blob.id} />
        ),
      )}
    </div>
  );
}

function Diff({ path, diff }: { path: string; diff: string }) {
  return (
    <div className="change-part">
      <DiffView label={path} lines={parseUnified(diff)} />
      <div className="change-copy">
        <Copy label={later.changes.copyPatch} content={() => diff} />
      </div>
    </div>
  );
}

function FetchedDiff({ path, blob }: { path: string; blob: string }) {
  const [diff, setDiff] = useState<string | null>(null);
  const [failed, setFailed] = useState(false);
  useEffect(() => {
    const leaving = new AbortController();
    fetch(blobUrl(blob), { credentials: "same-origin", signal: leaving.signal })
      .then((answer) => (answer.ok ? answer.text() : Promise.reject(new Error(answer.statusText))))
      .then(setDiff, () => {
        if (!leaving.signal.aborted) setFailed(true);
      });
    return () => leaving.abort();
  }, [blob]);
  if (failed) return <p className="tool-error">{later.changes.failed}</p>;
  return diff === null ? <p className="tool-none">{later.changes.loading}</p> : <Diff path={path} diff={diff} />;
}
