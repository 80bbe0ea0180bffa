/**
 * Evaluates all metrics of an autoscaler (L3): the one that asks for the most replicas decides; when one fails, the others may scale up but not down.
 * Upstream: computeReplicasForMetrics and validateAndParseSelector of pkg/controller/podautoscaler/horizontal.go (v1.36).
 */
import type { MetricSpec, MetricStatus } from '#api/gen/types/autoscaling.v2'
import type { Frozen } from '#api/machinery/meta'
import { evaluateMetric, type MetricContext, MetricFailure } from './metricTargets.ts'
import type { Proposal } from './replicaCalculator.ts'

export interface MetricsDecision {
  /** Undefined: the failures allow no decision. */
  readonly chosen: { readonly proposal: Proposal; readonly name: string } | undefined
  /** One for each metric, with an empty type where it failed. */
  readonly statuses: readonly MetricStatus[]
  /** Some metrics failed; undefined: none did. */
  readonly failure: { readonly first: MetricFailure; readonly message: string } | undefined
}

/** Called after each metric. */
export type OnMetric = (type: string, result: Proposal | MetricFailure) => void

export async function decideByMetrics(specs: readonly Frozen<MetricSpec>[], context: MetricContext, onMetric: OnMetric): Promise<MetricsDecision> {
  const statuses: MetricStatus[] = []
  const failures: MetricFailure[] = []
  let chosen: MetricsDecision['chosen']
  for (const spec of specs) {
    try {
      const { proposal, status, name } = await evaluateMetric(spec, context)
      onMetric(spec.type, proposal)
      statuses.push(status)
      if (!chosen || chosen.proposal.replicas === 0 || proposal.replicas > chosen.proposal.replicas) chosen = { proposal, name }
    } catch (error) {
      if (!(error instanceof MetricFailure)) throw error
      onMetric(spec.type, error)
      statuses.push({ type: '' })
      failures.push(error)
    }
  }
  const [first] = failures
  if (!first) return { chosen, statuses, failure: undefined }
  const message = `invalid metrics (${failures.length} invalid out of ${specs.length}), first error is: ${first.summary}`
  const scalesDown = (chosen?.proposal.replicas ?? 0) < context.specReplicas
  return { chosen: scalesDown ? undefined : chosen, statuses, failure: { first, message } }
}
