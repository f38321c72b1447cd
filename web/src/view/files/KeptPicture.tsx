/** A picture that the server keeps. */

import { text } from "../../text";
import { useKeptPicture } from "./kept";

export default function KeptPicture({ url }: { url: string }) {
  const shown = useKeptPicture(url);
  return shown && <img className="picture" src={shown} alt={text.message.image} decoding="async" />;
}
