/** The box people write in: grows with its text, takes images, says what is wrong before anything is sent. */

import { Suspense, useCallback, useEffect, useImperativeHandle, useRef, useState, type KeyboardEvent, type ReactNode, type Ref } from "react";
import { bytes } from "../../measures";
import { text } from "../../text";
import { Icon } from "../controls/Icon";
import { isMac, isTyping } from "../keys";
import { Completion } from "../later";
import type { Attachments } from "./attachments";
import type { CompletionPlace, TakesKey } from "./Completion";
import type { Edit } from "./format";
import { useAutoGrow } from "./grow";

// The server's bound on a message.
const MESSAGE_BYTES = 1024 * 1024;

// What may become a file's name or a command, roughly: whether it does is for `Completion` to say.
const ASKS = /^\/|(?:^|[^\w])@\S*$|@"/;

export interface ComposerHandle {
  focus: () => void;
}

interface ComposerBoxProps {
  ref?: Ref<ComposerHandle>;
  value: string;
  onChange: (value: string) => void;
  placeholder: string;
  attachments: Attachments;
  /** What a key does beyond sending; true when it took the key. */
  onKey?: (event: KeyboardEvent<HTMLTextAreaElement>, canSend: boolean) => boolean;
  onSend: () => void;
  /** A line below the text: offline, refused, too long. */
  notice?: string | null;
  /** What stands left and right under the text. */
  tools?: ReactNode;
  buttons: (canSend: boolean) => ReactNode;
  autoFocus?: boolean;
  /** Whose files and commands are offered while one writes. */
  completes: CompletionPlace;
}

export function ComposerBox(props: ComposerBoxProps) {
  const { value, attachments, onSend } = props;
  const field = useRef<HTMLTextAreaElement>(null);
  const picker = useRef<HTMLInputElement>(null);
  const [dropping, setDropping] = useState(false);
  const [caret, setCaret] = useState(0);
  const keys = useRef<TakesKey>(null);
  const onPut = useCallback((edit: Edit) => field.current && put(field.current, edit), []);
  useAutoGrow(field, value);
  useImperativeHandle(props.ref, () => ({ focus: () => field.current?.focus() }), []);

  const size = sizeOf(value);
  const tooLong = size > MESSAGE_BYTES ? text.composer.tooLong(bytes(size)) : null;
  const hasContent = value.trim() !== "" || attachments.items.some((item) => item.url !== null);
  const canSend = hasContent && tooLong === null && !attachments.busy;
  const notice = tooLong ?? attachments.refusal ?? props.notice ?? null;

  const format = useFormat();
  const onKeyDown = (event: KeyboardEvent<HTMLTextAreaElement>): void => {
    if (event.nativeEvent.isComposing || keys.current?.(event) || props.onKey?.(event, canSend)) return;
    const command = isMac ? event.metaKey && !event.ctrlKey : event.ctrlKey && !event.metaKey;
    const press = { key: event.key, code: event.code, command, shift: event.shiftKey };
    const edit = event.altKey ? null : format.current?.editOf(selectionOf(event.currentTarget), press);
    if (edit) {
      event.preventDefault();
      put(event.currentTarget, edit);
      return;
    }
    if (event.key === "Enter" && !event.shiftKey && !event.altKey) {
      event.preventDefault();
      if (canSend) onSend();
    }
  };

  return (
    <div
      className={dropping ? "composer dropping" : "composer"}
      onDragOver={(event) => {
        if (![...event.dataTransfer.types].includes("Files")) return;
        event.preventDefault();
        setDropping(true);
      }}
      onDragLeave={() => setDropping(false)}
      onDrop={(event) => {
        setDropping(false);
        if (event.dataTransfer.files.length === 0) return;
        event.preventDefault();
        attachments.add(event.dataTransfer.files);
      }}
      onPointerDown={(event) => {
        // A press anywhere in the box that is not on something else means the text.
        if (event.target !== event.currentTarget) return;
        event.preventDefault();
        field.current?.focus();
      }}
    >
      {field.current && ASKS.test(value.slice(0, caret)) && (
        <Suspense fallback={null}>
          <Completion {...props.completes} field={field.current} value={value} caret={caret} keys={keys} onPut={onPut} />
        </Suspense>
      )}
      <Thumbnails attachments={attachments} />
      <textarea
        ref={field}
        className="bare-field composer-text"
        aria-label={text.composer.label}
        aria-describedby={notice ? "composer-notice" : undefined}
        placeholder={dropping ? text.composer.drop : props.placeholder}
        rows={1}
        // Never from under somebody's fingers: whoever searches while a conversation still loads keeps the field.
        autoFocus={props.autoFocus === true && !isTyping(document.activeElement)}
        enterKeyHint="send"
        data-region-focus
        value={value}
        onChange={(event) => {
          setCaret(event.target.selectionEnd);
          props.onChange(event.target.value);
        }}
        onSelect={(event) => setCaret(event.currentTarget.selectionEnd)}
        onKeyDown={onKeyDown}
        onPaste={(event) => {
          const files = [...event.clipboardData.files];
          const link = files.length > 0 ? null : format.current?.linked(selectionOf(event.currentTarget), event.clipboardData.getData("text/plain"));
          if (link) {
            event.preventDefault();
            put(event.currentTarget, link);
          }
          if (files.length === 0) return;
          event.preventDefault();
          attachments.add(files);
        }}
      />
      {notice && (
        <p id="composer-notice" className={tooLong || attachments.refusal ? "composer-notice is-bad" : "composer-notice"} role="status">
          {notice}
        </p>
      )}
      <div className="composer-bar">
        <button
          type="button"
          className="icon-button"
          aria-label={text.composer.attach}
          title={text.composer.attach}
          onClick={() => picker.current?.click()}
        >
          <Icon name="image" />
        </button>
        <input
          ref={picker}
          type="file"
          accept="image/*"
          multiple
          hidden
          onChange={(event) => {
            attachments.add(event.target.files ?? []);
            event.target.value = "";
          }}
        />
        {props.tools}
        <span className="composer-space" />
        {props.buttons(canSend)}
      </div>
    </div>
  );
}

/** The keys that write markdown come after the first picture: whoever is faster writes the marks by hand. */
function useFormat() {
  const format = useRef<typeof import("./format") | null>(null);
  useEffect(() => {
    import("./format").then(
      (loaded) => (format.current = loaded),
      () => undefined,
    );
  }, []);
  return format;
}

function selectionOf({ value, selectionStart: start, selectionEnd: end }: HTMLTextAreaElement) {
  return { value, start, end };
}

/** As if it had been typed, so that it can be taken back. */
function put(field: HTMLTextAreaElement, { from, to, text: words, start, end }: Edit): void {
  field.setSelectionRange(from, to);
  document.execCommand(words === "" ? "delete" : "insertText", false, words);
  field.setSelectionRange(start, end);
}

/** Bytes on the wire. Counting is only worth it near the bound: a character is at most four bytes. */
function sizeOf(value: string): number {
  return value.length * 4 < MESSAGE_BYTES ? value.length : new Blob([value]).size;
}

function Thumbnails({ attachments }: { attachments: Attachments }) {
  if (attachments.items.length === 0) return null;
  return (
    <ul className="thumbnails">
      {attachments.items.map((item) => (
        <li key={item.key} className={item.error ? "thumbnail failed" : "thumbnail"}>
          <img src={item.preview} alt={item.name} />
          {item.url === null && <span className="thumbnail-state">{item.error ?? text.composer.uploading}</span>}
          <button
            type="button"
            className="thumbnail-remove"
            aria-label={`${text.composer.removeImage}: ${item.name}`}
            onClick={() => attachments.remove(item.key)}
          >
            <Icon name="close" />
          </button>
        </li>
      ))}
    </ul>
  );
}
