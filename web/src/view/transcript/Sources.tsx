/** What was recalled, opened: each source with its kind, where it leads, and the words that were found there. */

import type { KnowledgeSource } from "../../protocol/events.gen";
import { later } from "../../text.later";
import { usePageActions } from "../actions";
import { plainly, visible } from "../controls/visible";
import { addressOf } from "../route";

export default function Sources({ sources }: { sources: readonly KnowledgeSource[] }) {
  return (
    <ul className="sources">
      {sources.map((source, at) => (
        <li key={at} className="source">
          <span className="source-kind">{later.knowledge[source.kind]}</span>
          <Title source={source} />
          {source.snippet && <span className="source-snippet">{plainly(source.snippet)}</span>}
        </li>
      ))}
    </ul>
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
