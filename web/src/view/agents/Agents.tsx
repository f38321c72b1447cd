/** The agents screen: all of them, or the form of one, by what follows in the address. */

import { useQuery } from "../frame/query";
import type { ScreenProps } from "../screens";
import "../../style/agents.css";
import { AgentEditor } from "./AgentEditor";
import { AgentList } from "./AgentList";

export default function Agents(props: ScreenProps) {
  const isNew = useQuery("new") !== null;
  if (props.rest === "" && !isNew) return <AgentList {...props} />;
  return <AgentEditor key={props.rest} id={isNew ? null : props.rest} {...props} />;
}
