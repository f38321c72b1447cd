/** How the page writes what is not its own words: sentences and paths of the server, and lists of things. Pure. */

/** A sentence of the server, which quotes names as programmers do. */
export function said(message: string): string {
  return message.replace(/`([^`\n]+)`/g, "“$1”");
}

/** A path this long pushes what matters out of sight. */
const LONG_PATH_CHARS = 48;

/** A sentence or a command with its long paths made short: a home is "~", and of what lies far down only the end stays. */
export function shortPaths(words: string): string {
  return words.replace(/(^|[\s="“`])(\/[^\s"“”`]+)/g, (_, before: string, path: string) => {
    const near = path.replace(/^\/(?:home\/[^/]+|Users\/[^/]+|root)(?=\/)/, "~");
    const parts = near.split("/");
    return before + (near.length > LONG_PATH_CHARS && parts.length > 3 ? `…/${parts.slice(-2).join("/")}` : near);
  });
}

/** "a", "a and b", "a, b and c". */
export function list(...words: (string | false)[]): string {
  const said = words.filter((word) => word !== false);
  return said.length < 2 ? (said[0] ?? "") : `${said.slice(0, -1).join(", ")} and ${said.at(-1)}`;
}
