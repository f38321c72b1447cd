/** What was recalled before a message was answered: one line under it, opening to the sources and where they lead. */

import { Suspense } from "react";
import type { Knowledge, KnowledgeSource } from "../../protocol/events.gen";
import { text } from "../../text";
import { Icon } from "../controls/Icon";
import { Sources } from "../later";
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
        <Suspense fallback={null}>
          <Sources sources={sources} />
        </Suspense>
      )}
    </div>
  );
}
