/** A sentence of the server: what it quotes as code is shown as code, and a lone command can be copied. */

import { shortPaths } from "../../sentences";
import { places } from "../../text.places";
import { Copy } from "../controls/Copy";
import { visible } from "../controls/visible";
import { isCommand, piecesOf } from "./pieces";

export function Words({ children }: { children: string }) {
  return (
    <>
      {piecesOf(children).map((piece, index) =>
        piece.code ? (
          <code key={index} className="code-word">
            {visible(piece.text)}
          </code>
        ) : (
          piece.text
        ),
      )}
    </>
  );
}

/** What to do about something: a sentence, or a command for a terminal. */
export function Fix({ children }: { children: string }) {
  if (!isCommand(children)) {
    return (
      <p>
        <Words>{children}</Words>
      </p>
    );
  }
  return (
    <div className="command-line">
      <code className="mono" title={children}>
        {visible(shortPaths(children))}
      </code>
      <Copy label={places.frame.copyCommand} content={() => children} />
    </div>
  );
}
