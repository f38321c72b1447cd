/** What was recalled before a message was answered: one line under it, opening to the sources and where they lead. */

import type { Knowledge, KnowledgeSource } from "../../protocol/events.gen";
import { text } from "../../text";
import { usePageActions } from "../actions";
import { Icon } from "../controls/Icon";
import { plainly, visible } from "../controls/visible";
import { addressOf } from "../route";
import { useDisclosed } from "../store";

export function KnowledgeLine({ place, knowledge }: { place: string; knowledge: Knowledge }) {
  const [open, setOpen] = useDisclosed(`knowledge:${place}`);
  const { sources } = knowledge;
  if (sources.length === 0) return null;
  const count = (kind: KnowledgeSource["kind"]): number => sources.filter((source) => source.kind === kind).length;
  return (
    <div className="knowledge">
      <button type="button" className="tool-line" aria-expanded={open} onClick={() => setOpen(!open)}>
        <span className="tool-icon">
          <Icon name="book" />
        </span>
        <span className="tool-object">{text.knowledge.line(count("note"), count("conversation"), count("file"))}</span>
        <span className="tool-chevron">
          <Icon name="chevron" />
        </span>
        <span className="tool-result tabular">{knowledge.tokens > 0 && text.knowledge.tokens(knowledge.tokens)}</span>
      </button>
      {open && (
        <ul className="sources">
          {sources.map((source, at) => (
            <li key={at} className="source">
              <span className="source-kind">{text.knowledge.kind[source.kind]}</span>
              <Title source={source} />
              {source.snippet && <span className="source-snippet">{plainly(source.snippet)}</span>}
            </li>
          ))}
        </ul>
      )}
    </div>
  );
}

function Title({ source }: { source: KnowledgeSource }) {
  const actions = usePageActions();
  const title = visible(source.title || source.ref);
  if (source.kind !== "conversation") return <span className="source-title mono">{title}</span>;
  const at = source.seq ?? undefined;
  return (
    <a
      className="source-title"
      href={addressOf(source.ref, at)}
      onClick={(event) => {
        if (event.metaKey || event.ctrlKey || event.shiftKey) return;
        event.preventDefault();
        actions.open(source.ref, at);
      }}
    >
      {title}
    </a>
  );
}
