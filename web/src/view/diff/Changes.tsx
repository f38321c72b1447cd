/**
 * Changed files, one line each; a line opens to what changed in the file. A change too large for its event is fetched when
 * it is opened. Used by tool calls, by the summary of a turn and by the list of the whole conversation.
 */

import { byFile, type ChangedFile } from "../../model/changes";
import type { FileChange } from "../../protocol/events.gen";
import { text } from "../../text";
import { later } from "../../text.later";
import { useBlobText } from "../controls/blobText";
import { Copy } from "../controls/Copy";
import { Icon } from "../controls/Icon";
import { visible } from "../controls/visible";
import { useDisclosed } from "../store";
import { DiffView } from "./DiffView";
import { parseUnified } from "../../model/lines";

interface ChangesProps {
  /** Where it stands: what is open is remembered by it. */
  place: string;
  changes: readonly FileChange[];
  /** There is room for two columns. */
  roomy?: boolean;
  /** A list of names first. Elsewhere a single file is what one came to see. */
  folded?: boolean;
}

export function Changes({ place, changes, roomy = false, folded = false }: ChangesProps) {
  const files = byFile(changes);
  const patch = files.length > 1 ? wholePatch(files) : "";
  return (
    <>
      <ul className="changes">
        {files.map((file) => (
          <OneFile key={file.path} place={`${place}:${file.path}`} file={file} openAtFirst={!folded && files.length === 1} roomy={roomy} />
        ))}
      </ul>
      {patch && (
        <p className="changes-foot">
          <Copy label={later.changes.copyAll} content={() => patch} words />
        </p>
      )}
    </>
  );
}

/** What is at hand of all of them, in one text that a program can apply. */
function wholePatch(files: readonly ChangedFile[]): string {
  const diffs = files.flatMap(({ parts }) => parts.flatMap(({ diff }) => (diff === null ? [] : [diff])));
  return diffs.map((diff) => (diff.endsWith("\n") ? diff : `${diff}\n`)).join("");
}

interface OneFileProps {
  place: string;
  file: ChangedFile;
  openAtFirst: boolean;
  roomy: boolean;
}

function OneFile({ place, file, openAtFirst, roomy }: OneFileProps) {
  const [open, setOpen] = useDisclosed(place, openAtFirst);
  const { kind } = later.changes;
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
      {open && <Lines file={file} roomy={roomy} />}
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

function Lines({ file, roomy }: { file: ChangedFile; roomy: boolean }) {
  if (file.parts.length === 0) {
    // Lines were counted, so there were some.
    const counted = file.additions + file.deletions > 0;
    return <p className="tool-none change-none">{counted ? later.changes.none : later.changes.uncompared}</p>;
  }
  return (
    <div className="change-parts">
      {file.parts.map((part, at) =>
        part.diff !== null ? (
          <Diff key={at} path={file.path} diff={part.diff} roomy={roomy} />
        ) : (
          part.blob && <FetchedDiff key={at} path={file.path} blob={part.blob.id} roomy={roomy} />
        ),
      )}
    </div>
  );
}

function Diff({ path, diff, roomy }: { path: string; diff: string; roomy: boolean }) {
  return (
    <div className="change-part">
      <DiffView label={visible(path)} lines={parseUnified(diff)} roomy={roomy} />
      <div className="change-copy">
        <Copy label={later.changes.copyPatch} content={() => diff} />
      </div>
    </div>
  );
}

function FetchedDiff({ path, blob, roomy }: { path: string; blob: string; roomy: boolean }) {
  const { text: diff, failed } = useBlobText(blob);
  if (failed) return <p className="tool-error">{later.changes.failed}</p>;
  return diff === null ? <p className="tool-none">{later.changes.loading}</p> : <Diff path={path} diff={diff} roomy={roomy} />;
}
