/** What an answer cites: how many sources in one line, opening to each with the words that were cited. */

import { useMemo } from "react";
import { sourcesOf } from "../../model/citations";
import { later } from "../../text.later";
import { Icon } from "../controls/Icon";
import { plainly, visible } from "../controls/visible";
import { useDisclosed } from "../store";

export default function Citations({ place, citations }: { place: string; citations: readonly unknown[] }) {
  const [open, setOpen] = useDisclosed(`cited:${place}`);
  const sources = useMemo(() => sourcesOf(citations), [citations]);
  if (sources.length === 0) return null;
  return (
    <div className="tool">
      <button type="button" className="tool-line" aria-expanded={open} onClick={() => setOpen(!open)}>
        <span className="tool-icon">
          <Icon name="book" />
        </span>
        <span className="tool-object">{later.knowledge.cited(sources.length)}</span>
        <span className="tool-chevron">
          <Icon name="chevron" />
        </span>
      </button>
      {open && (
        <ol className="sources">
          {sources.map(({ title, url, quotes }) => (
            <li key={url ?? title} className="source">
              {url === null ? (
                <span className="source-title">{visible(title)}</span>
              ) : (
                <a className="source-title" href={url} title={url} target="_blank" rel="noopener noreferrer">
                  {visible(title)}
                </a>
              )}
              {quotes.map((quote) => (
                <span key={quote} className="source-snippet">
                  {plainly(quote)}
                </span>
              ))}
            </li>
          ))}
        </ol>
      )}
    </div>
  );
}
