/** What was refused, a line each. */

import { said } from "../../sentences";
import { later } from "../../text.later";
import type { OutboxEntry } from "../../transport/commands";
import { Icon } from "../controls/Icon";
import { useStore } from "../store";
import type { NoticesProps } from "./Notices";

export default function NoticeLines({ trouble, refused, onDismiss }: NoticesProps & { refused: readonly OutboxEntry[] }) {
  const store = useStore();
  return (
    <>
      {trouble !== null && <Notice words={trouble} onDismiss={onDismiss} />}
      {refused.map((entry) => (
        <Notice key={entry.id} words={wordsOf(entry)} onDismiss={() => store.discard(entry.id)} />
      ))}
    </>
  );
}

function Notice({ words, onDismiss }: { words: string; onDismiss: () => void }) {
  return (
    <p className="notice-line">
      <Icon name="warn" />
      <span>{words}</span>
      <button type="button" className="icon-button small" aria-label={later.notices.dismiss} onClick={onDismiss}>
        <Icon name="close" />
      </button>
    </p>
  );
}

function wordsOf(entry: OutboxEntry): string {
  return entry.error ? said(entry.error.message) : later.notices.refused;
}
