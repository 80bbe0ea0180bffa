/**
 * Assembles the aggregation layer (L3): the state that readiness waits for, and the loops that run with the server.
 * Upstream: kube-aggregator's post-start hooks in pkg/apiserver/apiserver.go.
 */
import type { ComputedGroup } from '../core/computedResource.ts'
import { type AggregatorDeps, runAggregator } from './aggregator.ts'
import { createAutoRegister } from './autoRegister.ts'
import { type ComputedGroupsDeps, createComputedGroups } from './computedGroups.ts'
import { keepTrust, publishTrust, type Trust } from './trustConfigMap.ts'

export interface AggregationLayerDeps extends AggregatorDeps, ComputedGroupsDeps {
  /** Group-versions that components of this process compute. */
  readonly computedGroups: readonly ComputedGroup[]
  /** Published for extension servers, so that they can verify this server and its users. Absent: not published. */
  readonly trust?: Trust | undefined
}

export interface AggregationLayer {
  /** Serves the computed group-versions of a cluster that was started before, until the signal aborts. */
  serve(signal: AbortSignal): void
  /** Resolves when every built-in group-version has its APIService. */
  start(signal: AbortSignal): Promise<void>
  /** Runs until the signal aborts. */
  run(signal: AbortSignal): Promise<void>
}

export function createAggregationLayer(deps: AggregationLayerDeps): AggregationLayer {
  const { trust, transport } = deps
  const autoRegister = createAutoRegister(deps)
  const computed = createComputedGroups(deps, deps.computedGroups)
  return {
    serve: computed.serve,
    async start(signal) {
      if (trust) await publishTrust(transport, trust, signal)
      await Promise.all([autoRegister.register(signal), computed.register(signal)])
    },
    async run(signal) {
      await Promise.all([autoRegister.run(signal), computed.run(signal), runAggregator(deps, signal), ...(trust ? [keepTrust(deps, trust, signal)] : [])])
    },
  }
}
