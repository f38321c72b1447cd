/** Copies text, and says so for a moment. */

import { useEffect, useState } from "react";
import { text } from "../../text";
import { Icon } from "./Icon";

// Long enough to be noticed, short enough to copy again.
const SHOWN_MS = 1600;

interface CopyProps {
  label: string;
  /** Asked for when pressed: making the text may cost something. */
  content: () => string;
  /** Says in words what it does, where there is room. */
  words?: boolean;
}

export function Copy({ label, content, words = false }: CopyProps) {
  const [copied, setCopied] = useState(false);
  useEffect(() => {
    if (!copied) return;
    const timer = setTimeout(() => setCopied(false), SHOWN_MS);
    return () => clearTimeout(timer);
  }, [copied]);
  return (
    <button
      type="button"
      className={words ? "button quiet small" : "icon-button small"}
      aria-label={copied ? text.message.copied : label}
      title={copied ? text.message.copied : label}
      onClick={() => void copyText(content()).then(setCopied)}
    >
      <Icon name={copied ? "check" : "copy"} />
      {words && (copied ? text.message.copied : label)}
    </button>
  );
}

export async function copyText(value: string): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(value);
    return true;
  } catch {
    return copyBySelection(value);
  }
}

/** Without HTTPS a browser has no clipboard API; the old way still works there. */
function copyBySelection(value: string): boolean {
  const field = document.createElement("textarea");
  field.value = value;
  field.className = "sr-only";
  document.body.append(field);
  const before = document.activeElement;
  field.select();
  const copied = document.execCommand("copy");
  field.remove();
  if (before instanceof HTMLElement) before.focus({ preventScroll: true });
  return copied;
}
