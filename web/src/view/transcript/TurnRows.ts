/** The rows that most turns with work have, in one file that is fetched beside the first data. */

export { default as TurnSummary } from "../tools/TurnSummary";
export { default as EventRow } from "./Events";
