/** What was recalled, opened: each source with its kind, where it leads, and the words that were found there. */

import type { KnowledgeSource } from "../../protocol/events.gen";
import { later } from "../../text.later";
import { plainly, visible } from "../controls/visible";
import { ScreenLink } from "../frame/ScreenLink";
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
  const title = visible(source.title || source.ref);
  if (source.kind !== "conversation") return <span className="source-title mono">{title}</span>;
  return (
    <ScreenLink className="source-title" to={addressOf(source.ref, source.seq ?? undefined)}>
      {title}
    </ScreenLink>
  );
}
