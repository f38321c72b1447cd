/** The last net: when drawing fails, say so in words and offer the way back. The log is on the server, nothing is lost. */

import { Component, type ReactNode } from "react";
import { text } from "../text";

interface CrashState {
  error: unknown;
}

export class Crash extends Component<{ children: ReactNode }, CrashState> {
  override state: CrashState = { error: null };

  static getDerivedStateFromError(error: unknown): CrashState {
    return { error };
  }

  override render(): ReactNode {
    const { error } = this.state;
    if (error === null) return this.props.children;
    return (
      <main className="door" role="alert">
        <div className="door-card">
          <h1 className="door-heading">{text.crash.heading}</h1>
          <p className="door-lead">{text.crash.body}</p>
          <button type="button" className="button primary" onClick={() => location.reload()}>
            {text.crash.reload}
          </button>
          <details className="error-details">
            <summary>{text.crash.details}</summary>
            <pre className="plain-box">{error instanceof Error ? `${error.message}\n${error.stack ?? ""}` : String(error)}</pre>
          </details>
        </div>
      </main>
    );
  }
}
