/** What runs on the server for conversations, with a way to end it. */

import { text } from "../../text";
import { ScreenFrame } from "../frame/ScreenFrame";
import type { ScreenProps } from "../screens";

export default function Processes({ listShown, onShowList }: ScreenProps) {
  return (
    <ScreenFrame heading={text.screens.processes} listShown={listShown} onShowList={onShowList}>
      {null}
    </ScreenFrame>
  );
}
