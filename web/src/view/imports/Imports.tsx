/** The conversations that other programs kept on the server's machine, to be brought here at any time. */

import { useCallback } from "react";
import { text } from "../../text";
import { places } from "../../text.places";
import { useFresh, useLaterApi } from "../frame/fresh";
import { ScreenFrame } from "../frame/ScreenFrame";
import { Trouble } from "../frame/Trouble";
import type { ScreenProps } from "../screens";
import { ImportPanel } from "./ImportPanel";

export default function Imports({ listShown, onShowList }: ScreenProps) {
  const api = useLaterApi();
  const load = useCallback(() => api.foundHistories(), [api]);
  const { value, error, loading, again } = useFresh(load);
  return (
    <ScreenFrame heading={text.screens.import} lead={places.imports.lead} listShown={listShown} onShowList={onShowList}>
      {error && <Trouble heading={places.imports.failed} error={error} onAgain={again} />}
      {!value && loading && (
        <p className="hint" role="status">
          {places.imports.looking}
        </p>
      )}
      {value?.length === 0 && (
        <section className="card is-empty">
          <p className="card-words">{places.imports.none}</p>
          <p className="card-words">{places.imports.noneHint}</p>
        </section>
      )}
      {value && value.length > 0 && (
        <section className="card" aria-label={text.screens.import}>
          <ImportPanel found={value} />
        </section>
      )}
    </ScreenFrame>
  );
}
