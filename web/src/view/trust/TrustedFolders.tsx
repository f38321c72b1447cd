/** Folders whose settings were trusted for an agent program, and a way to revoke each. */

import { useCallback, useState } from "react";
import { said } from "../../sentences";
import { trust } from "../../text.trust";
import { asApiError } from "../../transport/api";
import type { TrustedFolder } from "../../transport/api.later";
import { visible } from "../controls/visible";
import { useFresh, useLaterApi } from "../frame/fresh";
import { Trouble } from "../frame/Trouble";

export function TrustedFolders() {
  const api = useLaterApi();
  const load = useCallback(() => api.trustedFolders(), [api]);
  const { value, error, again } = useFresh(load);
  return (
    <>
      <p className="card-words">{trust.listLead}</p>
      {error && <Trouble heading={trust.listFailed} error={error} onAgain={again} />}
      {value?.length === 0 && <p className="hint">{trust.listNone}</p>}
      {value && value.length > 0 && (
        <ul className="grants">
          {value.map((folder) => (
            <FolderRow key={`${folder.program} ${folder.project}`} folder={folder} onRevoked={again} />
          ))}
        </ul>
      )}
    </>
  );
}

function FolderRow({ folder: { project, program, name, holds }, onRevoked }: { folder: TrustedFolder; onRevoked: () => void }) {
  const api = useLaterApi();
  const [state, setState] = useState<"kept" | "going" | { refused: string }>("kept");
  const revoke = (): void => {
    setState("going");
    api.revokeSettings(project, program).then(onRevoked, (cause: unknown) => setState({ refused: said(asApiError(cause).message) }));
  };
  return (
    <li className="grant">
      <span className="grant-what mono">{visible(project)}</span>
      <span className="hint">
        {name}
        {!holds && ` (${trust.lapsed})`}
      </span>
      <button type="button" className="button quiet small" aria-label={trust.revokeFor(name, visible(project))} disabled={state === "going"} onClick={revoke}>
        {state === "going" ? trust.revoking : trust.revoke}
      </button>
      {typeof state === "object" && (
        <span className="is-bad" role="alert">
          {state.refused}
        </span>
      )}
    </li>
  );
}
