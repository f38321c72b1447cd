/** Where a search was found: each hit with its surroundings; choosing one opens the conversation at that message. */

import { said } from "../../sentences";
import { text } from "../../text";
import { later } from "../../text.later";
import { Marked } from "../find/Marked";
import { ScreenLink } from "../frame/ScreenLink";
import { addressOf } from "../route";
import { usePick } from "../store";

interface SearchHitsProps {
  onChosen: () => void;
  /** Titles match too, so no hits is not nothing. */
  titles: boolean;
}

export default function SearchHits({ onChosen, titles }: SearchHitsProps) {
  const search = usePick((snapshot) => snapshot.search);
  if (search.phase === "typing" || search.phase === "loading") return <p className="list-note" role="status">{later.hits.searching}</p>;
  if (search.phase === "failed") return <p className="list-note" role="alert">{search.error ? said(search.error.message) : later.hits.failed}</p>;
  if (search.phase !== "ready") return null;
  if (search.hits.length === 0) return titles ? null : <p className="list-note" role="status">{later.hits.none(search.query)}</p>;
  return (
    <section aria-labelledby="search-hits">
      <h2 id="search-hits" className="list-group">
        {later.hits.count(search.hits.length)}
      </h2>
      <ul>
        {search.hits.map((hit) => (
          <li key={`${hit.conversation}:${hit.message}`} className="list-row">
            <ScreenLink className="list-link" to={addressOf(hit.conversation, hit.seq)} onFollow={onChosen}>
              <span className="list-top">
                <span className="list-title ellipsis">{hit.title || text.list.untitled}</span>
                <span className="list-time">{hit.role === "user" ? later.hits.byYou : later.hits.byAgent}</span>
              </span>
              <span className="hit">
                <Marked hit={hit} query={search.query} />
              </span>
            </ScreenLink>
          </li>
        ))}
      </ul>
    </section>
  );
}
