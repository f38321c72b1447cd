/** What a search found, with its surroundings: every word that was looked for is marked, not the first alone. */

import { piecesOf } from "../../model/find";
import type { SearchHit } from "../../protocol/wire";

export function Marked({ hit, query }: { hit: SearchHit; query: string }) {
  return (
    <>
      {marked(hit.before, query)}
      <mark>{hit.match}</mark>
      {marked(hit.after, query)}
    </>
  );
}

function marked(words: string, query: string) {
  return piecesOf(words, query).map((piece, at) => (at % 2 === 1 ? <mark key={at}>{piece}</mark> : piece));
}
