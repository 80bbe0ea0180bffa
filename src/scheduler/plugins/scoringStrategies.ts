/**
 * The three ways to score a node by its resources (L3): the emptier the better, the fuller the better, or along a line of one's own.
 * Upstream: plugins/noderesources/least_allocated.go, most_allocated.go, requested_to_capacity_ratio.go, plugins/helper/shape_score.go (v1.36).
 */
import { maxNodeScore } from '../framework/plugin.ts'
import type { ScoringStrategy, UtilizationShapePoint } from '../framework/pluginArgs.ts'
import type { ResourceUse } from './resourceScoring.ts'

export type Strategy = (uses: readonly ResourceUse[]) => number

export function strategyOf({ type, requestedToCapacityRatio }: ScoringStrategy): Strategy {
  if (type === 'RequestedToCapacityRatio') return alongShape(requestedToCapacityRatio?.shape ?? [])
  return type === 'MostAllocated' ? mostAllocated : leastAllocated
}

const leastAllocated: Strategy = (uses) =>
  weightedMean(uses, ({ requested, allocatable }) => (requested > allocatable ? 0 : Math.floor(((allocatable - requested) * maxNodeScore) / allocatable)))

// More than there is may be requested: containers that ask for nothing count as a little.
const mostAllocated: Strategy = (uses) =>
  weightedMean(uses, ({ requested, allocatable }) => Math.floor((Math.min(requested, allocatable) * maxNodeScore) / allocatable))

function weightedMean(uses: readonly ResourceUse[], score: (use: ResourceUse) => number): number {
  let sum = 0
  let weights = 0
  for (const use of uses) {
    sum += score(use) * use.weight
    weights += use.weight
  }
  return weights === 0 ? 0 : Math.floor(sum / weights)
}

/** Resources that score nothing do not count in the mean. */
function alongShape(shape: readonly UtilizationShapePoint[]): Strategy {
  const line = brokenLine(shape)
  return (uses) => {
    let sum = 0
    let weights = 0
    for (const { requested, allocatable, weight } of uses) {
      const score = line(requested > allocatable ? 100 : Math.floor((requested * 100) / allocatable))
      if (score <= 0) continue
      sum += score * weight
      weights += weight
    }
    return weights === 0 ? 0 : Math.round(sum / weights)
  }
}

/** The points' scores go from 0 to 10, nodes' to 100. */
const scale = maxNodeScore / 10

/** Straight from point to point, and level before the first and after the last. */
function brokenLine(shape: readonly UtilizationShapePoint[]): (utilization: number) => number {
  return (utilization) => {
    let before: UtilizationShapePoint | undefined
    for (const point of shape) {
      if (utilization <= point.utilization) {
        if (!before) return point.score * scale
        const rise = (point.score - before.score) * scale * (utilization - before.utilization)
        return before.score * scale + Math.trunc(rise / (point.utilization - before.utilization))
      }
      before = point
    }
    return (before?.score ?? 0) * scale
  }
}
