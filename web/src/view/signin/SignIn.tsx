/** The door: checking, a token to paste, why it was refused, or that the server does not answer. */

import { useEffect, useState, type FormEvent } from "react";
import type { SessionState } from "../../model/store";
import { clearCopy } from "../../offline/copy";
import { said } from "../../sentences";
import { places } from "../../text.places";
import { Mark } from "../controls/Mark";
import { useStore } from "../store";
import { codeRefusal } from "./code";

interface About {
  name: string;
  version: string;
}

export default function SignIn({ session }: { session: SessionState }) {
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
            {places.signIn.checkingCode}
          </p>
        )}
        {showsForm && <Server />}
        {showsForm && <TokenForm session={session} onAsk={() => setAsked(true)} />}
      </div>
    </main>
  );
}

/** Whose door this is. Who is not told goes in all the same. */
function Server() {
  const [about, setAbout] = useState<About | null>(null);
  useEffect(() => {
    const leave = new AbortController();
    // Who is not signed in is refused, and told by whom.
    fetch("/api/about", { signal: leave.signal })
      .then((response) => response.json() as Promise<{ details: About }>)
      .then(({ details }) => setAbout(details), () => undefined);
    return () => leave.abort();
  }, []);
  return <p className="door-server">{about && places.signIn.server(about.name, about.version)}</p>;
}

function Unreachable() {
  const store = useStore();
  return (
    <div role="alert">
      <h1 className="door-heading">{places.signIn.unreachable}</h1>
      <p className="door-lead">{places.signIn.unreachableHint}</p>
      <button type="button" className="button primary" onClick={() => store.reconnectNow()}>
        {places.signIn.again}
      </button>
    </div>
  );
}

interface TokenFormProps {
  session: SessionState;
  onAsk: () => void;
}

function TokenForm({ session, onAsk }: TokenFormProps) {
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
      <h1 className="door-heading">{places.signIn.heading}</h1>
      <p className="door-lead">{session.ended ? places.signIn[session.ended] : places.signIn.lead}</p>
      <label className="label" htmlFor="token">
        {places.signIn.token}
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
        {busy ? places.signIn.checking : places.signIn.submit}
      </button>
      <p id="token-hint" className="hint">
        {places.signIn.tokenHint}
      </p>
    </form>
  );
}
