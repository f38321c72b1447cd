/** What is shown is not the server's word: said at once, as long as it is so. */

import { dayAndClock } from "../../measures";
import { text } from "../../text";
import { later } from "../../text.later";
import { useStore } from "../store";

export default function CopyBanner({ copiedAt }: { copiedAt: number }) {
  const store = useStore();
  return (
    <div className="banner is-trouble is-fixed" role="status">
      <span className="tabular">{later.copy(dayAndClock(copiedAt, Date.now()))}</span>
      <button type="button" className="link-button" onClick={() => store.reconnectNow()}>
        {text.connection.now}
      </button>
    </div>
  );
}
