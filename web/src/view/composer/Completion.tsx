/**
 * The list above the message box while a file or a command is being written: arrows walk it, Enter and Tab choose, Escape
 * closes it. Called by the box, which keeps the focus and asks this first what a key means.
 *
 * The box stays a text field of several lines, which cannot be a combobox: it names this list and the chosen option in
 * attributes that are set here, so that nothing of it is waited for at the first picture.
 */

import { useEffect, useId, useLayoutEffect, useMemo, useState, type KeyboardEvent, type RefObject } from "react";
import type { FileTree } from "../../protocol/agents";
import { palette } from "../../text.palette";
import type { LaterApi } from "../../transport/api.later";
import { Icon } from "../controls/Icon";
import { visible } from "../controls/visible";
import { useLaterApi } from "../frame/fresh";
import { useCommands } from "../palette/commands";
import "../../style/complete.css";
import { askedAt, commandsLike, filesLike, filesOf, folderIn, withFile, type Asked, type FoundFile } from "./complete";
import type { Edit } from "./format";

/** As deep as the server goes at once. */
const DEPTH = 8;

export type TakesKey = (event: KeyboardEvent<HTMLTextAreaElement>) => boolean;

export interface CompletionPlace {
  /** The folder whose files are meant; null: where one works without naming one. */
  project: string | null;
  conversation: string | null;
}

interface CompletionProps extends CompletionPlace {
  field: HTMLTextAreaElement;
  value: string;
  caret: number;
  /** What a key does here goes in. */
  keys: RefObject<TakesKey | null>;
  onPut: (edit: Edit) => void;
}

interface Option {
  key: string;
  name: string;
  /** Where it stands, or what it is pressed with. */
  note: string;
  icon: "file" | "folder" | null;
  choose: () => void;
}

export default function Completion({ field, value, caret, project, conversation, keys, onPut }: CompletionProps) {
  const id = useId();
  const focused = useFocused(field);
  const asked = askedAt(value, caret);
  const [closed, setClosed] = useState<number | null>(null);
  const [chosen, setChosen] = useState({ query: "", at: 0 });
  const { files, looking } = useFiles(project, asked?.kind === "file" ? asked.query : null);
  const commands = useCommands(conversation);

  const options = useMemo((): Option[] => {
    if (asked?.kind === "file") return filesLike(asked.query, files).map((file) => fileOption(asked, file));
    if (asked?.kind === "command") {
      return commandsLike(asked.query, commands).map(({ name, key = "", run }) => ({
        key: name,
        name,
        note: key,
        icon: null,
        choose: () => {
          onPut({ from: 0, to: value.length, text: "", start: 0, end: 0 });
          // Once the box is empty: a command may leave the page that it stands on.
          queueMicrotask(run);
        },
      }));
    }
    return [];

    function fileOption(token: Asked, file: FoundFile): Option {
      const cut = file.path.lastIndexOf("/", file.path.length - 2) + 1;
      return {
        key: file.path,
        name: file.path.slice(cut),
        note: file.path.slice(0, cut),
        icon: file.folder ? "folder" : "file",
        choose: () => onPut(withFile(token, caret, file)),
      };
    }
    // Of what is asked only these two count.
  }, [asked?.kind, asked?.query, asked?.from, caret, value.length, files, commands, onPut]);

  const isOpen = focused && asked !== null && closed !== asked.from;
  const shown = isOpen && options.length > 0;
  const at = chosen.query === asked?.query ? Math.min(chosen.at, options.length - 1) : 0;
  const query = asked?.query ?? "";

  const onKey: TakesKey = (event) => {
    if (!isOpen || event.ctrlKey || event.metaKey || event.altKey) return false;
    if (event.key === "Escape" && (shown || looking)) setClosed(asked.from);
    else if (event.key === "Tab" && event.shiftKey) {
      // Out of the way of whoever goes back.
      setClosed(asked.from);
      return true;
    } else if (!shown || event.shiftKey) return false;
    else if (event.key === "ArrowDown") setChosen({ query, at: (at + 1) % options.length });
    else if (event.key === "ArrowUp") setChosen({ query, at: (at - 1 + options.length) % options.length });
    else if (event.key === "Enter" || event.key === "Tab") options[at]?.choose();
    else return false;
    event.preventDefault();
    return true;
  };
  useLayoutEffect(() => {
    keys.current = onKey;
    return () => {
      keys.current = null;
    };
  });

  useLayoutEffect(() => {
    if (!shown) return;
    const said = { "aria-autocomplete": "list", "aria-haspopup": "listbox", "aria-controls": id, "aria-activedescendant": `${id}-${at}` };
    for (const [name, words] of Object.entries(said)) field.setAttribute(name, words);
    return () => {
      for (const name of Object.keys(said)) field.removeAttribute(name);
    };
  }, [field, id, shown, at]);

  const isFile = asked?.kind === "file";
  return (
    <>
      <p className="sr-only" role="status">
        {shown && (isFile ? palette.complete.files(options.length) : palette.complete.commands(options.length))}
      </p>
      {isOpen && isFile && looking && options.length === 0 && <p className="complete hint">{palette.complete.looking}</p>}
      {shown && (
        <div
          id={id}
          className="complete"
          role="listbox"
          aria-label={isFile ? palette.complete.fileLabel : palette.complete.commandLabel}
          // It can be reached, since it scrolls; but the box keeps the focus, and the keyboard of a phone stays.
          tabIndex={0}
          onFocus={() => field.focus()}
          onMouseDown={(event) => event.preventDefault()}
        >
          {options.map(({ key, name, note, icon, choose }, index) => (
            <div
              key={key}
              id={`${id}-${index}`}
              role="option"
              aria-selected={index === at}
              className={index === at ? "complete-item chosen" : "complete-item"}
              ref={index === at ? (element) => element?.scrollIntoView({ block: "nearest" }) : undefined}
              onPointerMove={() => index !== at && setChosen({ query, at: index })}
              onClick={choose}
            >
              {icon && <Icon name={icon} />}
              <span className="complete-name ellipsis">{visible(name)}</span>
              {icon ? <span className="complete-place ellipsis">{visible(note)}</span> : note && <kbd>{note}</kbd>}
            </div>
          ))}
        </div>
      )}
    </>
  );
}

function useFocused(field: HTMLElement): boolean {
  const [focused, setFocused] = useState(document.activeElement === field);
  useEffect(() => {
    const onFocus = (): void => setFocused(true);
    const onBlur = ({ relatedTarget }: FocusEvent): void => setFocused(relatedTarget instanceof Element && relatedTarget.closest(".complete") !== null);
    field.addEventListener("focus", onFocus);
    field.addEventListener("blur", onBlur);
    return () => {
      field.removeEventListener("focus", onFocus);
      field.removeEventListener("blur", onBlur);
    };
  }, [field]);
  return focused;
}

/** The tree that was asked for last: shown at once, while it is asked for anew. */
let held: { project: string | null; tree: FileTree } | null = null;

const NONE: FoundFile[] = [];

/** The files of a folder, from when they are first asked for. Of a large tree, those inside a folder once it is written. */
function useFiles(project: string | null, query: string | null): { files: FoundFile[]; looking: boolean } {
  const api = useLaterApi();
  const [tree, setTree] = useState(held?.project === project ? held.tree : null);
  const [more, setMore] = useState(NONE);
  const [looking, setLooking] = useState(false);
  const wanted = query !== null;

  useEffect(() => {
    if (!wanted) return;
    return whileHere(treeOf(api, project, "."), setLooking, (found) => {
      held = { project, tree: found };
      setTree(found);
    });
  }, [wanted, api, project]);

  const files = useMemo(() => {
    const top = filesOf(tree?.entries ?? []);
    const known = new Set(top.map(({ path }) => path));
    return [...top, ...more.filter(({ path }) => !known.has(path))];
  }, [tree, more]);

  const inside = tree?.truncated && query !== null ? folderIn(query, files) : null;
  useEffect(() => {
    if (inside === null) return;
    return whileHere(treeOf(api, project, inside), setLooking, (found) => setMore((before) => [...before, ...filesOf(found.entries)]));
  }, [inside, api, project]);

  return { files, looking };
}

/** Files that cannot be had are not offered: whoever writes goes on writing. */
function whileHere(asked: Promise<FileTree | null>, setLooking: (looking: boolean) => void, take: (found: FileTree) => void): () => void {
  let here = true;
  setLooking(true);
  void asked
    .catch(() => null)
    .then((found) => {
      if (!here) return;
      setLooking(false);
      if (found !== null) take(found);
    });
  return () => {
    here = false;
  };
}

async function treeOf(api: LaterApi, project: string | null, path: string): Promise<FileTree | null> {
  const folder = project ?? (await api.projects()).find(({ home }) => home)?.project;
  return folder === undefined ? null : api.tree(folder, path, DEPTH);
}
