/** A native modal dialog, there while it is rendered. Esc and a press beside it close it. */

import { useEffect, useRef, type ReactNode } from "react";

interface DialogProps {
  label: string;
  className?: string;
  onClose: () => void;
  children: ReactNode;
}

export function Dialog({ label, className, onClose, children }: DialogProps) {
  const dialog = useRef<HTMLDialogElement>(null);
  useEffect(() => {
    const element = dialog.current;
    if (element && !element.open) element.showModal();
    return () => element?.close();
  }, []);
  return (
    <dialog
      ref={dialog}
      className={className}
      aria-label={label}
      onCancel={(event) => {
        // A file picker inside a dialog cancels too, and bubbles.
        if (event.target !== event.currentTarget) return;
        event.preventDefault();
        onClose();
      }}
      onClick={(event) => {
        if (event.target === event.currentTarget) onClose();
      }}
    >
      {children}
    </dialog>
  );
}

/** Whether something lies above the page, so that Esc belongs to it. */
export function layerIsOpen(): boolean {
  return document.querySelector("dialog[open], :popover-open") !== null;
}
