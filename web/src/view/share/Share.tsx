/** A conversation as a file: which kind, made with its progress, then saved, shared or copied. */

import { useEffect, useRef, useState } from "react";
import { asApiError, type ApiError } from "../../transport/api";
import { fetchExport, FORMATS, type Format } from "../../transport/export";
import { bytes } from "../../measures";
import { said } from "../../sentences";
import { text } from "../../text";
import { share as words } from "../../text.browse";
import { copyText } from "../controls/Copy";
import { Dialog } from "../controls/Dialog";
import { Icon } from "../controls/Icon";
import { usePick } from "../store";
import "../../style/share.css";

type Step =
  | { kind: "choosing" }
  | { kind: "preparing"; size: number; stop: AbortController }
  | { kind: "ready"; file: File; url: string }
  | { kind: "failed"; error: ApiError };

/** More is nobody's clipboard. */
const COPY_BYTES = 4 << 20;

export default function Share({ id, onClose }: { id: string; onClose: () => void }) {
  const title = usePick(({ list }) => list.byId.get(id)?.title) || text.list.untitled;
  const [format, setFormat] = useState<Format>("html");
  const [step, setStep] = useState<Step>({ kind: "choosing" });
  const [note, setNote] = useState("");
  const current = useRef(step);
  current.current = step;
  useEffect(() => () => leave(current.current), []);

  const make = async (kind: Format): Promise<void> => {
    const stop = new AbortController();
    setFormat(kind);
    setNote("");
    setStep({ kind: "preparing", size: 0, stop });
    try {
      const file = await fetchExport(id, kind, stop.signal, (size) => setStep((now) => (now.kind === "preparing" ? { ...now, size } : now)));
      if (!stop.signal.aborted) setStep({ kind: "ready", file, url: URL.createObjectURL(file) });
    } catch (cause) {
      if (!stop.signal.aborted) setStep({ kind: "failed", error: asApiError(cause) });
    }
  };
  const again = (): void => {
    leave(step);
    setNote("");
    setStep({ kind: "choosing" });
  };

  return (
    <Dialog label={words.heading} className="share" onClose={onClose}>
      <div className="key-help-head">
        <h2>{words.heading}</h2>
        <button type="button" className="icon-button" aria-label={words.close} onClick={onClose}>
          <Icon name="close" />
        </button>
      </div>
      <p className="share-title ellipsis">{title}</p>
      {step.kind === "choosing" && (
        <>
          <p className="hint">{words.lead}</p>
          <fieldset className="share-formats">
            <legend className="sr-only">{words.format}</legend>
            {FORMATS.map((one) => (
              <label key={one} className="option">
                <input type="radio" name="format" checked={one === format} onChange={() => setFormat(one)} />
                <span>
                  <span className="option-label">{words.formats[one][0]}</span>
                  <span className="option-more">{words.formats[one][1]}</span>
                </span>
              </label>
            ))}
          </fieldset>
          <p className="hint share-secrets">
            <Icon name="shield" />
            {words.secrets}
          </p>
          <div className="confirm-bar">
            <button type="button" className="button primary" onClick={() => void make(format)}>
              <Icon name="export" />
              {words.prepare}
            </button>
          </div>
        </>
      )}
      {step.kind === "preparing" && (
        <>
          <p role="status" className="tabular">
            {words.preparing(step.size)}
          </p>
          <div className="confirm-bar">
            <button
              type="button"
              className="button"
              autoFocus
              onClick={() => {
                step.stop.abort();
                setStep({ kind: "choosing" });
              }}
            >
              {words.stop}
            </button>
          </div>
        </>
      )}
      {step.kind === "ready" && <Ready file={step.file} url={step.url} note={note} onNote={setNote} onAgain={again} />}
      {step.kind === "failed" && <Failed error={step.error} onLog={() => void make("jsonl")} onAgain={() => void make(format)} />}
    </Dialog>
  );
}

function leave(step: Step): void {
  if (step.kind === "preparing") step.stop.abort();
  if (step.kind === "ready") URL.revokeObjectURL(step.url);
}

interface ReadyProps {
  file: File;
  url: string;
  note: string;
  onNote: (note: string) => void;
  onAgain: () => void;
}

function Ready({ file, url, note, onNote, onAgain }: ReadyProps) {
  const sendable = typeof navigator.canShare === "function" && navigator.canShare({ files: [file] });
  const send = async (): Promise<void> => {
    try {
      await navigator.share({ files: [file], title: file.name });
      onNote(words.sent);
    } catch (cause) {
      // Whoever changed their mind knows.
      if (!(cause instanceof DOMException && cause.name === "AbortError")) onNote(words.notSent);
    }
  };
  return (
    <>
      <p className="share-file" role="status">
        <Icon name="file" />
        <span className="mono ellipsis">{file.name}</span>
        <span className="share-size tabular">{bytes(file.size)}</span>
      </p>
      <p className="hint" role="status">
        {note}
      </p>
      <div className="confirm-bar">
        <button type="button" className="button quiet" onClick={onAgain}>
          {words.again}
        </button>
        {!file.type.startsWith("text/html") && file.size <= COPY_BYTES && (
          <button type="button" className="button" onClick={() => void file.text().then(copyText).then((done) => onNote(done ? words.copied : ""))}>
            <Icon name="copy" />
            {words.copy}
          </button>
        )}
        {sendable && (
          <button type="button" className="button" onClick={() => void send()}>
            {words.send}
          </button>
        )}
        <a className="button primary" href={url} download={file.name} autoFocus>
          <Icon name="down" />
          {words.save}
        </a>
      </div>
    </>
  );
}

function Failed({ error, onLog, onAgain }: { error: ApiError; onLog: () => void; onAgain: () => void }) {
  const tooLarge = error.status === 413;
  return (
    <div role="alert" className="card is-trouble">
      <h3 className="card-heading">
        <Icon name="warn" />
        {tooLarge ? words.tooLarge : words.failed}
      </h3>
      <p>{said(error.message)}</p>
      {tooLarge && <p>{words.tooLargeHint}</p>}
      <div className="card-bar">
        <button type="button" className="button small" autoFocus onClick={tooLarge ? onLog : onAgain}>
          {tooLarge ? words.asLog : words.retry}
        </button>
      </div>
    </div>
  );
}
