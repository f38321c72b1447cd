/** Every command by name, and every conversation by title: type, choose, done. The field is there at once, what fits is loaded. */

import { Suspense, useId, useState, type KeyboardEvent } from "react";
import { text } from "../../text";
import { Dialog } from "../controls/Dialog";
import { PaletteList } from "../later";

/** What the list wants to know of the field's keys. */
export interface Keys {
  press: ((key: string) => void) | null;
  /** Enter was pressed while the list was still on its way. */
  entered: boolean;
}

interface PaletteProps {
  conversation: string | null;
  onClose: () => void;
}

export function Palette({ conversation, onClose }: PaletteProps) {
  const id = useId();
  const [query, setQuery] = useState("");
  // Undefined until the list is there, null when nothing fits.
  const [chosen, setChosen] = useState<string | null>();
  const [keys] = useState<Keys>({ press: null, entered: false });

  const onKeyDown = (event: KeyboardEvent): void => {
    const { key } = event;
    if (key !== "ArrowDown" && key !== "ArrowUp" && (key !== "Enter" || event.nativeEvent.isComposing)) return;
    event.preventDefault();
    if (keys.press) keys.press(key);
    else if (key === "Enter") keys.entered = true;
  };

  return (
    <Dialog label={text.palette.label} className="palette" onClose={onClose}>
      <input
        className="palette-field"
        role="combobox"
        aria-expanded={chosen !== undefined}
        aria-controls={chosen === undefined ? undefined : `${id}-list`}
        aria-activedescendant={chosen ?? undefined}
        aria-label={text.palette.label}
        placeholder={text.palette.placeholder}
        autoFocus
        spellCheck={false}
        value={query}
        onChange={(event) => setQuery(event.target.value)}
        onKeyDown={onKeyDown}
      />
      <Suspense fallback={null}>
        <PaletteList id={id} conversation={conversation} query={query} keys={keys} onChosen={setChosen} onClose={onClose} />
      </Suspense>
    </Dialog>
  );
}
