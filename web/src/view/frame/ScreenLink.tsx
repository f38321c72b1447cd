/** A link to another place of the page, followed without loading it anew. */

import type { ReactNode } from "react";
import { goTo } from "../route";

interface ScreenLinkProps {
  to: string;
  className?: string;
  /** Before the page goes there. */
  onFollow?: () => void;
  children: ReactNode;
}

export function ScreenLink({ to, className, onFollow, children }: ScreenLinkProps) {
  return (
    <a
      href={to}
      className={className}
      onClick={(event) => {
        if (event.metaKey || event.ctrlKey || event.shiftKey) return;
        event.preventDefault();
        onFollow?.();
        goTo(to);
      }}
    >
      {children}
    </a>
  );
}
