/** What stands behind the question mark of the address. */

import { useRoute } from "../route";

export function useQuery(name: string): string | null {
  useRoute();
  return new URLSearchParams(location.search).get(name);
}

/** An address with what is given behind it. */
export function withQuery(path: string, query: Readonly<Record<string, string | null | undefined>>): string {
  const given = Object.entries(query).filter((pair): pair is [string, string] => pair[1] != null && pair[1] !== "");
  return given.length === 0 ? path : `${path}?${new URLSearchParams(given)}`;
}
