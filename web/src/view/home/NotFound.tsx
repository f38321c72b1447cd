/** An address with nothing at it: what was looked for, and the ways on. */

import { places } from "../../text.places";
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
        <h1 className="notice-heading">{places.notFound.heading}</h1>
        <p>
          {places.notFound.lookedFor} <code className="code-word">{visible(decoded(location.pathname)).slice(0, SHOWN_CHARS)}</code>
        </p>
        <p>{places.notFound.hint}</p>
        <p className="notice-ways">
          <ScreenLink to="/" className="button">
            {places.notFound.home}
          </ScreenLink>
          <ScreenLink to="/conversations" className="button">
            {places.notFound.all}
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
