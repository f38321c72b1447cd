/** What fits the words typed into the palette: commands first, then conversations. It hears the keys of the palette's field. */

import { useEffect, useLayoutEffect, useMemo, useState } from "react";
import { text } from "../../text";
import { palette } from "../../text.palette";
import { usePageActions } from "../actions";
import { usePick } from "../store";
import { useCommands, type PaletteCommand } from "./commands";
import type { Keys } from "./Palette";

// More is not read; typing narrows it down.
const CONVERSATIONS_SHOWN = 8;

interface PaletteListProps {
  id: string;
  conversation: string | null;
  query: string;
  keys: Keys;
  onChosen: (option: string | null) => void;
  onClose: () => void;
}

export default function PaletteList({ id, conversation, query, keys, onChosen, onClose }: PaletteListProps) {
  const actions = usePageActions();
  const list = usePick((snapshot) => snapshot.list.byId);
  const commands = useCommands(conversation);
  const [at, setAt] = useState(0);
  const [asked, setAsked] = useState(query);
  if (asked !== query) {
    setAsked(query);
    setAt(0);
  }

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

  const size = entries.all.length;
  useLayoutEffect(() => {
    keys.press = (key) => {
      if (key === "ArrowDown") setAt(size === 0 ? 0 : (at + 1) % size);
      else if (key === "ArrowUp") setAt(size === 0 ? 0 : (at - 1 + size) % size);
      else run(entries.all[at]);
    };
  });
  useEffect(() => {
    // Pressed before this was loaded: it is meant for what fits best.
    if (keys.entered) run(entries.all[0]);
  }, []);
  const chosen = size > 0 ? `${id}-${at}` : null;
  useLayoutEffect(() => onChosen(chosen), [chosen, onChosen]);

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
    <>
      <div id={`${id}-list`} className="palette-list" role="listbox" aria-label={text.palette.label}>
        {group(palette.found.commands, entries.commands, 0)}
        {group(palette.found.conversations, entries.conversations, entries.commands.length)}
      </div>
      {size === 0 && <p className="list-note" role="status">{palette.found.none}</p>}
    </>
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
