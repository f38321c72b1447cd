/** What is typed as the address of this server. Pure. */

export function isAddress(typed: string): boolean {
  return /^https?:\/\/[^\s/]+/.test(typed) && URL.canParse(typed);
}

/** Names of the machine itself, which mean another machine on another one. */
export function isLoopback(typed: string): boolean {
  if (!isAddress(typed)) return false;
  const { hostname } = new URL(typed);
  return hostname === "localhost" || hostname.endsWith(".localhost") || hostname === "[::1]" || /^127\./.test(hostname);
}
