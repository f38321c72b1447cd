/** The door: checking, a token to paste, why it was refused, or that the server does not answer. */

import { useEffect, useState, type FormEvent } from "react";
import type { SessionState } from "../../model/store";
import { clearCopy } from "../../offline/copy";
import { said } from "../../text";
import { later } from "../../text.later";
import { Mark } from "../controls/Mark";
import { useStore } from "../store";
import { codeRefusal } from "./code";

export default function SignIn({ session, wasIn }: { session: SessionState; wasIn: boolean }) {
  const [asked, setAsked] = useState(false);
  // Who is not known here any more has no copy here either.
  useEffect(() => {
    if (session.phase === "signed_out") clearCopy().catch(() => undefined);
  }, [session.phase]);
  const showsForm = session.phase === "signed_out" || (session.phase === "checking" && asked);
  return (
    <main className="door">
      <div className="door-card">
        <Mark />
        {session.phase === "unreachable" && <Unreachable />}
        {session.phase === "checking" && !asked && (
          <p className="door-lead" role="status">
            {later.signIn.checkingCode}
          </p>
        )}
        {showsForm && <TokenForm session={session} wasIn={wasIn} onAsk={() => setAsked(true)} />}
      </div>
    </main>
  );
}

function Unreachable() {
  const store = useStore();
  return (
    <div role="alert">
      <h1 className="door-heading">{later.signIn.unreachable}</h1>
      <p className="door-lead">{later.signIn.unreachableHint}</p>
      <button type="button" className="button primary" onClick={() => store.reconnectNow()}>
        {later.signIn.again}
      </button>
    </div>
  );
}

interface TokenFormProps {
  session: SessionState;
  wasIn: boolean;
  onAsk: () => void;
}

function TokenForm({ session, wasIn, onAsk }: TokenFormProps) {
  const store = useStore();
  const [token, setToken] = useState("");
  const busy = session.phase === "checking";
  const refusal = busy ? null : (session.error ?? codeRefusal());

  const submit = (event: FormEvent): void => {
    event.preventDefault();
    if (token.trim() === "" || busy) return;
    onAsk();
    void store.signIn({ token: token.trim() });
  };

  return (
    <form onSubmit={submit}>
      <h1 className="door-heading">{later.signIn.heading}</h1>
      <p className="door-lead">{wasIn ? later.signIn.signedOut : later.signIn.lead}</p>
      <label className="label" htmlFor="token">
        {later.signIn.token}
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
        {refusal ? said(refusal.message) : ""}
      </p>
      <button type="submit" className="button primary door-submit" disabled={busy || token.trim() === ""}>
        {busy ? later.signIn.checking : later.signIn.submit}
      </button>
      <p id="token-hint" className="hint">
        {later.signIn.tokenHint}
      </p>
    </form>
  );
}
