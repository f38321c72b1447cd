/** A named part of a screen, as a card. */

import type { ReactNode } from "react";

export function Section({ heading, children }: { heading: string; children: ReactNode }) {
  return (
    <section className="card" aria-label={heading}>
      <h2 className="card-heading">{heading}</h2>
      {children}
    </section>
  );
}
