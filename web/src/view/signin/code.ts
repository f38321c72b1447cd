/** The one-time code of a sign-in link. It leaves the address before anything else happens: no history, no copy, no share. */

export function takeCode(): string | null {
  const fragment = new URLSearchParams(location.hash.slice(1));
  const code = fragment.get("code");
  if (code === null) return null;
  fragment.delete("code");
  const rest = fragment.toString();
  history.replaceState(history.state, "", `${location.pathname}${location.search}${rest ? `#${rest}` : ""}`);
  return code === "" ? null : code;
}
