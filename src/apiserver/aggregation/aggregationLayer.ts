/**
 * Assembles the aggregation layer (L3): the state that readiness waits for, and the loops that run with the server.
 * Upstream: kube-aggregator's post-start hooks in pkg/apiserver/apiserver.go.
 */
import { type AggregatorDeps, runAggregator } from './aggregator.ts'
import { createAutoRegister } from './autoRegister.ts'
import { keepTrust, publishTrust, type Trust } from './trustConfigMap.ts'

export interface AggregationLayerDeps extends AggregatorDeps {
  /** Published for extension servers, so that they can verify this server and its users. Absent: not published. */
  readonly trust?: Trust | undefined
}

export interface AggregationLayer {
  /** Called once at start; resolves when every group-version has its APIService. */
  start(signal: AbortSignal): Promise<void>
  /** Runs until the signal aborts. */
  run(signal: AbortSignal): Promise<void>
}

export function createAggregationLayer(deps: AggregationLayerDeps): AggregationLayer {
  const { trust, transport } = deps
  const autoRegister = createAutoRegister(deps)
  return {
    async start(signal) {
      if (trust) await publishTrust(transport, trust, signal)
      await autoRegister.register(signal)
    },
    async run(signal) {
      await Promise.all([autoRegister.run(signal), runAggregator(deps, signal), ...(trust ? [keepTrust(deps, trust, signal)] : [])])
    },
  }
}
