/** The conversations that other programs kept, to be brought here. */

import { text } from "../../text";
import { ScreenFrame } from "../frame/ScreenFrame";
import type { ScreenProps } from "../screens";

export default function Imports({ listShown, onShowList }: ScreenProps) {
  return (
    <ScreenFrame heading={text.screens.import} listShown={listShown} onShowList={onShowList}>
      {null}
    </ScreenFrame>
  );
}
