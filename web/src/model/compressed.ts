/**
 * What a model is shown less of: the recorded compressions as the places in the transcript where they end. Pure; the row
 * book puts a divider at each.
 *
 * Of each stage only the furthest horizon counts, as the server has it; stages that reach equally far share a divider.
 */

import type { Compression } from "../protocol/events.gen";

export type Strength = Compression["strength"];

export interface CompressedRange {
  /** What began before this seq is shown to the model in a shorter way. */
  readonly horizon: number;
  readonly strength: Strength;
  readonly beforeTokens: number;
  readonly afterTokens: number;
  /** In the order they were taken. */
  readonly stages: readonly Compression[];
  readonly summary: string | null;
}

const WEIGHT: Record<Strength, number> = { absent: 0, low: 1, medium: 2, high: 3 };

export function compressedRanges(compressions: readonly Compression[]): CompressedRange[] {
  const furthest = new Map<string, Compression>();
  for (const one of compressions) {
    if (one.horizon >= (furthest.get(one.stage)?.horizon ?? 1)) furthest.set(one.stage, one);
  }
  const byHorizon = new Map<number, Compression[]>();
  for (const one of [...furthest.values()].toSorted((a, b) => a.seq - b.seq)) {
    byHorizon.set(one.horizon, [...(byHorizon.get(one.horizon) ?? []), one]);
  }
  return [...byHorizon].map(([horizon, stages]) => range(horizon, stages)).toSorted((a, b) => a.horizon - b.horizon);
}

function range(horizon: number, stages: readonly Compression[]): CompressedRange {
  return {
    horizon,
    strength: stages.map((stage) => stage.strength).reduce((a, b) => (WEIGHT[b] > WEIGHT[a] ? b : a)),
    beforeTokens: Math.max(...stages.map((stage) => stage.before_tokens)),
    afterTokens: Math.min(...stages.map((stage) => stage.after_tokens)),
    stages,
    summary: stages.findLast((stage) => stage.summary !== null)?.summary ?? null,
  };
}

/** How much less the model is shown, in whole per cent. */
export function savedPercent({ beforeTokens, afterTokens }: CompressedRange): number {
  return beforeTokens <= 0 ? 0 : Math.max(0, Math.round((1 - afterTokens / beforeTokens) * 100));
}
