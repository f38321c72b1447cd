/** A link to another place of the page, followed without loading it anew. */

import type { ComponentProps } from "react";
import { goTo, inThisTab } from "../route";

interface ScreenLinkProps extends Omit<ComponentProps<"a">, "href" | "onClick"> {
  to: string;
  /** Before the page goes there. */
  onFollow?: () => void;
}

export function ScreenLink({ to, onFollow, ...shown }: ScreenLinkProps) {
  return (
    <a
      {...shown}
      href={to}
      onClick={inThisTab(() => {
        onFollow?.();
        goTo(to);
      })}
    />
  );
}
