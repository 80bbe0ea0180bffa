/**
 * Applies priority and fairness to requests (L3): a request that must wait does so in a queue of its flow, and is refused with Retry-After when the
 * queue is full or the wait too long. Only the start of a watch counts. Upstream: apiserver/pkg/server/filters/priority-and-fairness.go.
 */
import type { Clock } from '#base/clock'
import type { Answer } from '../core/answer.ts'
import type { ServerRequest } from '../core/request.ts'
import { decided, finished, type Handler, isLongRunning, type Stage } from '../core/stage.ts'
import type { FlowControl } from '../flowcontrol/flowControl.ts'
import type { FlowRequest } from '../flowcontrol/flowRequest.ts'
import { isOwnComponent } from '../flowcontrol/ownComponent.ts'
import { createTooManyRequests } from './tooManyRequests.ts'

const mostWaitMs = 60_000

/** @param requestTimeoutMs for requests without a deadline; a request waits for a quarter of its timeout at most */
export function priorityAndFairnessStage(flowControl: FlowControl, clock: Clock, requestTimeoutMs: number): Stage {
  const tooManyRequests = createTooManyRequests()
  const execute = (entry: FlowRequest, request: ServerRequest, next: Handler) => {
    tell(entry, request)
    // An in-process client sends one request after the other, each after the answer to the last.
    let isInTurn = request.inProcessUser === undefined
    const work = finished(next, request, (answer) => {
      flowControl.finish(entry, answer)
      if (isInTurn && answer?.type !== 'watch') flowControl.linger(entry)
    })
    isInTurn = false
    return work
  }
  const reject = (entry: FlowRequest, request: ServerRequest): Answer => {
    tell(entry, request)
    request.refusedBy = `priorityAndFairness, ${ruleOf(entry)}`
    return tooManyRequests(request, flowControl.refuse(entry))
  }
  const waitMs = (request: ServerRequest): number | undefined => {
    if (isOwnComponent(request)) return undefined
    const most = Math.min((request.timeoutMs ?? requestTimeoutMs) / 4, mostWaitMs)
    return Math.max(0, most - (clock.now() - request.receivedMs))
  }
  const queued = async (entry: FlowRequest, request: ServerRequest, next: Handler): Promise<Answer> => {
    const startedMs = clock.monotonicMs()
    const go = await flowControl.wait(entry, waitMs(request))
    const waitedMs = clock.monotonicMs() - startedMs
    request.excludedMs = (request.excludedMs ?? 0) + waitedMs
    request.audit?.spent('apf-queue-wait', waitedMs)
    if (request.trace) decided(request, 'priorityAndFairness', go ? 'waited' : 'rejected after waiting', waitedMs, { rule: ruleOf(entry) })
    return go ? execute(entry, request, next) : reject(entry, request)
  }
  return {
    name: 'priorityAndFairness',
    handle(request, next) {
      if (isLongRunning(request) && request.info?.verb !== 'watch') return next(request)
      const entry = flowControl.start(request)
      if (entry.state === 'waiting') return queued(entry, request, next)
      if (request.trace) decided(request, 'priorityAndFairness', entry.state, 0, { rule: ruleOf(entry) })
      return entry.state === 'executing' ? execute(entry, request, next) : reject(entry, request)
    },
  }
}

function ruleOf({ flow }: FlowRequest): string {
  return `FlowSchema ${flow.flowSchema}`
}

/** Sets the headers with UIDs. Names are left out, since they may reveal how requests are prioritized. */
function tell({ flow }: FlowRequest, { responseHeaders }: ServerRequest): void {
  if (!responseHeaders) return
  responseHeaders['x-kubernetes-pf-prioritylevel-uid'] = flow.priorityLevelUid
  responseHeaders['x-kubernetes-pf-flowschema-uid'] = flow.flowSchemaUid
}
