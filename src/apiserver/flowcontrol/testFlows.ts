/** Flows, levels and requests for the tests of flow control (tests only). */
import { noMetrics } from '#base/metrics'
import { VirtualClock } from '#base/virtualClock'
import { requestOf } from '../core/testRequest.ts'
import { DroppedRequests } from './droppedRequests.ts'
import { flowControlMetrics } from './flowMetrics.ts'
import type { Flow, FlowRequest } from './flowRequest.ts'
import { Integrator } from './integrator.ts'
import { QueueSet, type QueuingConfiguration } from './queueSet.ts'
import { dealHand, hashFlow } from './shuffleSharding.ts'
import type { WorkEstimate } from './workEstimate.ts'

export const metrics = flowControlMetrics(noMetrics)
export const oneSeat: WorkEstimate = { initialSeats: 1, finalSeats: 0, additionalLatencyMs: 0 }

export function flowNamed(distinguisher: string, { queues, handSize }: QueuingConfiguration): Flow {
  const hand = queues > 0 ? dealHand(hashFlow('schema', distinguisher), queues, handSize) : []
  return {
    ...{ flowSchema: 'schema', distinguisher, hand, metrics: metrics.schema('schema', 'level'), lately: { seats: 0 }, dropped: new DroppedRequests() },
    ...{ flowSchemaUid: 'schema-uid', priorityLevelUid: 'level-uid' },
  }
}

export function queueSetOf(configuration: QueuingConfiguration, limit: number) {
  const clock = new VirtualClock()
  const demand = new Integrator(0)
  const queueSet = new QueueSet({ clock, metrics: metrics.level('level'), demand })
  queueSet.configure(configuration, limit)
  const start = (flow: Flow, work: WorkEstimate = oneSeat, isPatient = false): FlowRequest => queueSet.start(flow, requestOf(), work, isPatient)
  return { clock, queueSet, demand, start }
}

/** The load of clients: each keeps a number of requests in flight, of a given duration. */
export interface Load {
  readonly flow: Flow
  readonly clients: number
  readonly serviceMs: number
  readonly work?: WorkEstimate
}

/** Runs the loads for so long; how many requests of each were served, in seat-milliseconds, and the longest wait. */
export async function runLoads(
  { clock, queueSet, start }: ReturnType<typeof queueSetOf>,
  loads: readonly Load[],
  forMs: number,
): Promise<{ served: number; rejected: number; longestWaitMs: number }[]> {
  const results = loads.map(() => ({ served: 0, rejected: 0, longestWaitMs: 0 }))
  const untilMs = clock.monotonicMs() + forMs
  loads.forEach(({ flow, clients, serviceMs, work = oneSeat }, i) => {
    const result = results[i] as (typeof results)[number]
    const ask = () => {
      if (clock.monotonicMs() >= untilMs) return
      const entry = start(flow, work)
      const run = () => {
        result.longestWaitMs = Math.max(result.longestWaitMs, clock.monotonicMs() - entry.arrivalMs)
        clock.timer(serviceMs, () => {
          queueSet.finish(entry)
          result.served += serviceMs * entry.seats
          ask()
        })
      }
      if (entry.state === 'executing') run()
      else if (entry.state === 'waiting') entry.dispatched = run
      else {
        result.rejected++
        clock.timer(serviceMs, ask)
      }
    }
    for (let client = 0; client < clients; client++) ask()
  })
  await clock.advance(forMs)
  return results
}

/** 1: all have the same; 1/n: one has all. */
export function jainIndex(values: readonly number[]): number {
  const sum = values.reduce((total, value) => total + value, 0)
  const squares = values.reduce((total, value) => total + value * value, 0)
  return (sum * sum) / (values.length * squares)
}
