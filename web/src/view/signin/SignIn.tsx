/** The door: checking, a token to paste, why it was refused, or that the server does not answer. */

import { useState, type FormEvent } from "react";
import type { SessionState } from "../../model/store";
import { text } from "../../text";
import { Mark } from "../controls/Mark";
import { useStore } from "../store";

export default function SignIn({ session, wasIn }: { session: SessionState; wasIn: boolean }) {
  return (
    <main className="door">
      <div className="door-card">
        <Mark />
        {session.phase === "checking" && <p className="door-lead" role="status">{text.signIn.checkingCode}</p>}
        {session.phase === "unreachable" && <Unreachable />}
        {session.phase === "signed_out" && <TokenForm session={session} wasIn={wasIn} />}
      </div>
    </main>
  );
}

function Unreachable() {
  const store = useStore();
  return (
    <div role="alert">
      <h1 className="door-heading">{text.signIn.unreachable}</h1>
      <p className="door-lead">{text.signIn.unreachableHint}</p>
      <button type="button" className="button primary" onClick={() => store.start()}>
        {text.signIn.again}
      </button>
    </div>
  );
}

function TokenForm({ session, wasIn }: { session: SessionState; wasIn: boolean }) {
  const store = useStore();
  const [token, setToken] = useState("");
  const [busy, setBusy] = useState(false);

  const submit = async (event: FormEvent): Promise<void> => {
    event.preventDefault();
    if (token.trim() === "" || busy) return;
    setBusy(true);
    await store.signIn({ token: token.trim() });
    setBusy(false);
  };

  const refusal = session.error;
  return (
    <form onSubmit={(event) => void submit(event)}>
      <h1 className="door-heading">{text.signIn.heading}</h1>
      <p className="door-lead">{wasIn ? text.signIn.signedOut : text.signIn.lead}</p>
      <label className="label" htmlFor="token">
        {text.signIn.token}
      </label>
      <input
        id="token"
        className="field mono"
        type="password"
        autoComplete="current-password"
        autoCapitalize="off"
        spellCheck={false}
        autoFocus
        value={token}
        aria-invalid={refusal !== null}
        aria-describedby="token-hint token-error"
        onChange={(event) => setToken(event.target.value)}
      />
      <p id="token-error" className="door-error" role="alert">
        {refusal && !busy ? refusal.message : ""}
      </p>
      <button type="submit" className="button primary door-submit" disabled={busy || token.trim() === ""}>
        {busy ? text.signIn.checking : text.signIn.submit}
      </button>
      <p id="token-hint" className="hint">
        {text.signIn.tokenHint}
      </p>
    </form>
  );
}
