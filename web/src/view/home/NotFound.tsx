/** An address with nothing at it: what was looked for, and the ways on. */

import { later } from "../../text.later";
import { visible } from "../controls/visible";
import { ScreenLink } from "../frame/ScreenLink";
import { HeaderFrame } from "../header/Header";
import type { ScreenProps } from "../screens";

// Longer is no address that anybody typed.
const SHOWN_CHARS = 200;

export default function NotFound({ listShown, onShowList }: ScreenProps) {
  return (
    <>
      <HeaderFrame listShown={listShown} onShowList={onShowList} />
      <main className="notice">
        <h1 className="notice-heading">{later.notFound.heading}</h1>
        <p>
          {later.notFound.lookedFor} <code className="code-word">{visible(decoded(location.pathname)).slice(0, SHOWN_CHARS)}</code>
        </p>
        <p>{later.notFound.hint}</p>
        <p className="notice-ways">
          <ScreenLink to="/" className="button">
            {later.notFound.home}
          </ScreenLink>
          <ScreenLink to="/conversations" className="button">
            {later.notFound.all}
          </ScreenLink>
        </p>
      </main>
    </>
  );
}

function decoded(path: string): string {
  try {
    return decodeURIComponent(path);
  } catch {
    return path;
  }
}
