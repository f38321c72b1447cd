/** Every command by name, and every conversation by title: type, choose, done. */

import { useId, useMemo, useState, type KeyboardEvent } from "react";
import { text } from "../../text";
import { usePageActions } from "../actions";
import { Dialog } from "../controls/Dialog";
import { usePick } from "../store";
import { useCommands, type PaletteCommand } from "./commands";

// More is not read; typing narrows it down.
const CONVERSATIONS_SHOWN = 8;

interface PaletteProps {
  conversation: string | null;
  onClose: () => void;
}

export function Palette({ conversation, onClose }: PaletteProps) {
  const id = useId();
  const actions = usePageActions();
  const list = usePick((snapshot) => snapshot.list.byId);
  const commands = useCommands(conversation);
  const [query, setQuery] = useState("");
  const [at, setAt] = useState(0);

  const entries = useMemo(() => {
    const conversations = [...list.values()]
      .filter((item) => !item.deleted && item.id !== conversation && fits(item.title, query))
      .toSorted((a, b) => b.updated_at - a.updated_at)
      .slice(0, CONVERSATIONS_SHOWN)
      .map((item): PaletteCommand => ({ name: item.title || text.list.untitled, note: item.agent, run: () => actions.open(item.id) }));
    const fitting = commands.filter((command) => fits(command.name, query));
    // What begins with the words typed is what was meant, if anything is.
    const named = query === "" ? fitting : fitting.toSorted((a, b) => Number(begins(b.name, query)) - Number(begins(a.name, query)));
    return { commands: named, conversations, all: [...named, ...conversations] };
  }, [list, commands, query, conversation, actions]);

  const run = (entry: PaletteCommand | undefined): void => {
    if (!entry) return;
    onClose();
    // After the dialog gave the focus back, so that a command may take it.
    queueMicrotask(entry.run);
  };

  const onKeyDown = (event: KeyboardEvent): void => {
    const size = entries.all.length;
    if (event.key === "ArrowDown") setAt(size === 0 ? 0 : (at + 1) % size);
    else if (event.key === "ArrowUp") setAt(size === 0 ? 0 : (at - 1 + size) % size);
    else if (event.key === "Enter" && !event.nativeEvent.isComposing) run(entries.all[at]);
    else return;
    event.preventDefault();
  };

  const group = (heading: string, items: readonly PaletteCommand[], from: number) =>
    items.length > 0 && (
      <div role="group" aria-label={heading}>
        <p className="list-group" aria-hidden="true">
          {heading}
        </p>
        {items.map((entry, index) => (
          <div
            key={entry.name + from}
            id={`${id}-${from + index}`}
            role="option"
            aria-selected={from + index === at}
            className={from + index === at ? "palette-item chosen" : "palette-item"}
            ref={from + index === at ? (element) => element?.scrollIntoView({ block: "nearest" }) : undefined}
            onPointerMove={() => setAt(from + index)}
            onClick={() => run(entry)}
          >
            <span className="ellipsis">{entry.name}</span>
            {entry.note && <span className="hint">{entry.note}</span>}
            {entry.key && <kbd>{entry.key}</kbd>}
          </div>
        ))}
      </div>
    );

  return (
    <Dialog label={text.palette.label} className="palette" onClose={onClose}>
      <input
        className="palette-field"
        role="combobox"
        aria-expanded="true"
        aria-controls={`${id}-list`}
        aria-activedescendant={entries.all.length > 0 ? `${id}-${at}` : undefined}
        aria-label={text.palette.label}
        placeholder={text.palette.placeholder}
        autoFocus
        spellCheck={false}
        value={query}
        onChange={(event) => {
          setQuery(event.target.value);
          setAt(0);
        }}
        onKeyDown={onKeyDown}
      />
      <div id={`${id}-list`} className="palette-list" role="listbox" aria-label={text.palette.label}>
        {group(text.palette.commands, entries.commands, 0)}
        {group(text.palette.conversations, entries.conversations, entries.commands.length)}
      </div>
      {entries.all.length === 0 && <p className="list-note" role="status">{text.palette.none}</p>}
    </Dialog>
  );
}

function begins(name: string, query: string): boolean {
  return name.toLowerCase().startsWith(query.toLowerCase());
}

/** Every word typed occurs in the name. */
function fits(name: string, query: string): boolean {
  const known = name.toLowerCase();
  return query.toLowerCase().split(/\s+/).every((word) => known.includes(word));
}
