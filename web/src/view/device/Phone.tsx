/** A link for another device as a picture: it signs in once, within a minute, with the rights that are chosen here. */

import { useEffect, useId, useState } from "react";
import { encode } from "uqr";
import { said } from "../../sentences";
import { text } from "../../text";
import { device as words } from "../../text.device";
import { asApiError, type ApiError } from "../../transport/api";
import { Copy } from "../controls/Copy";
import { useSeconds } from "../controls/now";
import { SelectField, TextField } from "../frame/Fields";
import { useLaterApi } from "../frame/fresh";
import { usePick } from "../store";
import { isAddress, isLoopback } from "./address";
import { Section } from "./Section";

type Made = { code: string; until: number } | "making" | { failed: ApiError } | null;

export function Phone() {
  const api = useLaterApi();
  const isOwner = usePick(({ session }) => session.session?.roles.includes("admin") === true);
  const [role, setRole] = useState<keyof typeof words.roles>("human");
  const [address, setAddress] = useState(location.origin);
  const [made, setMade] = useState<Made>(null);
  // Another role is another code.
  useEffect(() => setMade(null), [role]);
  if (!isOwner) {
    return (
      <Section heading={words.phone}>
        <p className="card-words">{words.phoneForbidden}</p>
      </Section>
    );
  }

  const make = async (): Promise<void> => {
    setMade("making");
    try {
      const { code, expires_in_s } = await api.newCode(role);
      setMade({ code, until: Date.now() + expires_in_s * 1000 });
    } catch (cause) {
      setMade({ failed: asApiError(cause) });
    }
  };
  const usable = isAddress(address);
  return (
    <Section heading={words.phone}>
      <p className="card-words">{words.phoneLead}</p>
      <div className="settings-grid">
        <SelectField label={words.phoneRole} value={role} options={Object.entries(words.roles)} onChange={(one) => setRole(one as typeof role)} />
        <TextField
          label={words.phoneAddress}
          hint={isLoopback(address) ? <span className="device-warn">{words.phoneLoopback}</span> : words.phoneAddressHint}
          error={usable ? undefined : words.phoneBad}
          code
          value={address}
          onChange={setAddress}
        />
      </div>
      {made !== null && typeof made === "object" && "code" in made ? (
        <Shown link={`${address.replace(/\/+$/, "")}/#code=${made.code}`} until={made.until} onAgain={() => void make()} />
      ) : (
        <div className="card-bar">
          <button type="button" className="button small" disabled={!usable || made === "making"} onClick={() => void make()}>
            {made === "making" ? words.phoneMaking : words.phoneShow}
          </button>
          {made !== null && typeof made === "object" && "failed" in made && (
            <span className="is-bad" role="alert">
              {text.join(words.phoneFailed, said(made.failed.message))}
            </span>
          )}
        </div>
      )}
    </Section>
  );
}

function Shown({ link, until, onAgain }: { link: string; until: number; onAgain: () => void }) {
  const left = Math.max(0, Math.ceil((until - useSeconds()) / 1000));
  const status = useId();
  return (
    <div className="device-code">
      {left > 0 && <Qr link={link} />}
      <p id={status} className="tabular">
        {left > 0 ? words.phoneLeft(left) : words.phoneOver}
      </p>
      {left > 0 ? (
        <p className="device-link">
          <Copy label={words.phoneCopy} content={() => link} />
          <span className="card-quiet">{words.phoneCopy}</span>
        </p>
      ) : (
        <button type="button" className="button small" onClick={onAgain}>
          {words.phoneAgain}
        </button>
      )}
    </div>
  );
}

/** Always dark on light: cameras do not read the other way round. */
function Qr({ link }: { link: string }) {
  const { data, size } = encode(link, { ecc: "M", border: 4 });
  const path = data.flatMap((row, y) => row.flatMap((dark, x) => (dark ? `M${x} ${y}h1v1h-1z` : []))).join("");
  return (
    <svg className="qr" viewBox={`0 0 ${size} ${size}`} role="img" aria-label={words.phoneAlt} shapeRendering="crispEdges">
      <path d={path} />
    </svg>
  );
}
