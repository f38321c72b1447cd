/** What every screen beside conversations stands in: the bar with its name and the way to the list, and one column. */

import { useEffect, useRef, type ReactNode } from "react";
import { HeaderFrame } from "../header/Header";
import "../../style/screens.css";

interface ScreenFrameProps {
  heading: string;
  lead?: ReactNode;
  /** Buttons at the end of the bar. */
  buttons?: ReactNode;
  listShown: boolean;
  onShowList: () => void;
  children: ReactNode;
}

export function ScreenFrame({ heading, lead, buttons, listShown, onShowList, children }: ScreenFrameProps) {
  const main = useRef<HTMLElement>(null);
  // Whoever came by the keyboard goes on from here, not from the top of the list.
  useEffect(() => main.current?.focus({ preventScroll: true }), []);
  return (
    <div className="screen">
      <HeaderFrame listShown={listShown} onShowList={onShowList}>
        <div className="bar-title">
          <h1 className="screen-heading ellipsis">{heading}</h1>
        </div>
        {buttons}
      </HeaderFrame>
      <main ref={main} className="screen-body" aria-label={heading} data-region tabIndex={-1}>
        <div className="screen-column">
          {lead && <p className="screen-lead">{lead}</p>}
          {children}
        </div>
      </main>
    </div>
  );
}
