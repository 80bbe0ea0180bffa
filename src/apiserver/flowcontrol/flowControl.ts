/**
 * Priority and fairness (L3): finds each request's flow and level, and executes, queues or refuses it; follows the objects that configure it, and
 * moves seats between levels. Upstream: apiserver/pkg/util/flowcontrol apf_controller.go, apf_filter.go.
 */
import type { FlowSchema, PriorityLevelConfiguration } from '#api/gen/types/flowcontrol.v1'
import { mandatoryFlowSchemas } from '#api/kinds/flowcontrol/bootstrapObjects'
import { flowcontrolGroup as group } from '#api/kinds/flowcontrol/conditions'
import { semanticEqual } from '#api/machinery/equality'
import type { Frozen } from '#api/machinery/meta'
import type { Clock } from '#base/clock'
import type { Logger } from '#base/log'
import type { Metrics } from '#base/metrics'
import type { Random } from '#base/random'
import { createWakeUp } from '#base/wakeUp'
import type { Transport } from '#client/transport'
import type { Answer } from '../core/answer.ts'
import type { ObjectReader } from '../core/objectReader.ts'
import type { RequestInfo, ServerRequest, UserInfo } from '../core/request.ts'
import { createDanglingStatus, type DanglingStatus } from './danglingStatus.ts'
import { debugPage } from './debugPages.ts'
import { flowControlMetrics } from './flowMetrics.ts'
import type { FlowRequest } from './flowRequest.ts'
import { FlowSchemas } from './flowSchemas.ts'
import { createLingering } from './lingering.ts'
import { isOwnComponent } from './ownComponent.ts'
import { PriorityLevels } from './priorityLevels.ts'
import { type ReadWriteRatios, readWriteRatios } from './readWriteRatios.ts'
import { WatchTracker } from './watchTracker.ts'
import { createWorkEstimator, type ObjectStats } from './workEstimate.ts'

export interface FlowControlDeps {
  readonly reader: Pick<ObjectReader, 'list' | 'onChange'>
  readonly clock: Clock
  readonly random: Random
  readonly log: Logger
  readonly metrics: Metrics
  objectStats(info: RequestInfo): ObjectStats | undefined
}

export interface FlowControl {
  /** Accepts a request; its state is executing, waiting or rejected. An executing one must be passed to `finish`. */
  start(request: ServerRequest): FlowRequest
  /** Resolves with true when the request may run, with false when it waited too long or its client is gone. Undefined `mostMs`: no limit. */
  wait(entry: FlowRequest, mostMs: number | undefined): Promise<boolean>
  /** `answer`: absent when it failed. */
  finish(entry: FlowRequest, answer: Answer | undefined): void
  /**
   * Counts a synchronously answered request against its flow for some more turns of the event loop, because a client's requests in these turns are
   * concurrent to the client. Otherwise a thousand concurrent reads would never count as more than one, and never be refused.
   */
  linger(entry: FlowRequest): void
  /** Counts a refused request. @returns Retry-After in seconds */
  refuse(entry: FlowRequest): number
  debugPage(request: ServerRequest): Answer | undefined
  /** Applies the current configuration, and writes the status of flow schemas. */
  sync(transport: Transport, signal: AbortSignal): Promise<void>
  /** Follows the configuration and moves seats until the signal aborts. */
  run(transport: Transport, signal: AbortSignal): Promise<void>
}

const levelResource = { group, resource: 'prioritylevelconfigurations' }
const schemaResource = { group, resource: 'flowschemas' }
const adjustmentMs = 10_000
const retryMs = 1_000

/** @param serverLimit how many seats there are */
export function createFlowControl(deps: FlowControlDeps, serverLimit: number): FlowControl {
  const { reader, clock, log } = deps
  const metrics = flowControlMetrics(deps.metrics)
  const ratios = readWriteRatios(deps.metrics, clock, serverLimit)
  const levels = new PriorityLevels({ clock, metrics }, serverLimit)
  const watches = new WatchTracker()
  const estimator = createWorkEstimator({ objectStats: (info) => deps.objectStats(info), watchCount: (info) => watches.interested(info) })
  const linger = createLingering(clock)
  const changed = createWakeUp()
  const digest = (configurations: readonly Frozen<PriorityLevelConfiguration>[], objects: readonly Frozen<FlowSchema>[]) => {
    levels.digest(configurations)
    const usable = inOrder(objects).flatMap((object) => {
      const level = levels.desired(object.spec.priorityLevelConfiguration.name)
      return level ? [{ object, level, metrics: metrics.schema(object.metadata.name ?? '', level.name) }] : []
    })
    return new FlowSchemas(usable)
  }
  let schemas = digest([], [])
  const refresh = async (status: DanglingStatus, signal: AbortSignal): Promise<number | undefined> => {
    const configurations = reader.list<PriorityLevelConfiguration>(levelResource)
    const objects = reader.list<FlowSchema>(schemaResource)
    schemas = digest(configurations, objects)
    return status.sync(objects, (name) => configurations.some(({ metadata }) => metadata.name === name), signal)
  }
  return {
    start(request) {
      const { level, flow } = schemas.classify(request.user as UserInfo, request.info as RequestInfo)
      const work = estimator.estimate(request, level.maxSeats, flow.metrics.watchCount)
      const entry = level.queueSet.start(flow, request, work, isOwnComponent(request))
      flow.metrics.estimatedSeats.observe(entry.seats)
      if (entry.state === 'executing') {
        ratios.add('executing', verbOf(request), 1)
        flow.metrics.dispatched.inc()
        if (!level.isExempt) flow.metrics.waitedAndRan.observe(0)
      } else if (entry.state === 'rejected') flow.metrics.waitedInVain.observe(0)
      return entry
    },
    wait: (entry, mostMs) => waitForTurn(entry, mostMs, clock, ratios),
    finish(entry, answer) {
      const { metrics: series } = entry.flow
      ratios.add('executing', verbOf(entry.request), -1)
      const seconds = entry.set.finish(entry) / 1000
      if (answer?.type === 'watch') {
        series.watchExecutionSeconds.observe(seconds)
        answer.session.whenClosed(watches.register(entry.request.info as RequestInfo))
      } else series.executionSeconds.observe(seconds)
      if (levels.someQuiescing && entry.set.isIdle) changed.ring()
    },
    linger,
    refuse({ flow: { dropped } }) {
      dropped.record(Math.floor(clock.now() / 1000))
      return dropped.retryAfter
    },
    debugPage: (request) => debugPage(request, levels.all, clock),
    async sync(transport, signal) {
      await refresh(createDanglingStatus({ ...deps, transport }), signal)
    },
    async run(transport, signal) {
      const status = createDanglingStatus({ ...deps, transport })
      const unsubscribe = [
        reader.onChange<PriorityLevelConfiguration>(levelResource, ({ type, object, old }) => {
          if (type === 'DELETED' || !isSame(old?.spec, object.spec)) changed.ring()
        }),
        reader.onChange<FlowSchema>(schemaResource, ({ type, object, old }) => {
          if (type === 'DELETED' || !isSame(old?.spec, object.spec) || !isSame(old?.status, object.status)) changed.ring()
        }),
      ]
      const stopAdjusting = repeat(() => levels.updateBorrowing(), clock)
      changed.ring()
      while (!signal.aborted) {
        await changed.wait(signal)
        if (signal.aborted) break
        const againMs = await refresh(status, signal).catch((error: unknown) => {
          if (!signal.aborted) log.error(error, 'Writing the status of flow schemas failed; trying again')
          return retryMs
        })
        if (againMs !== undefined) clock.timer(againMs, () => changed.ring())
      }
      for (const stop of [...unsubscribe, stopAdjusting]) stop()
    },
  }
}

/** Sorts by precedence, then by name; adds mandatory ones whose objects are missing. */
function inOrder(objects: readonly Frozen<FlowSchema>[]): readonly Frozen<FlowSchema>[] {
  const missing = mandatoryFlowSchemas.filter(({ metadata }) => !objects.some((one) => one.metadata.name === metadata.name))
  const all: Frozen<FlowSchema>[] = [...objects, ...missing]
  const precedence = ({ spec }: Frozen<FlowSchema>) => spec.matchingPrecedence ?? 0
  return all.sort((a, b) => precedence(a) - precedence(b) || ((a.metadata.name ?? '') < (b.metadata.name ?? '') ? -1 : 1))
}

/** Whether two specs are equal, for changes of other fields. */
function isSame(before: unknown, after: unknown): boolean {
  return before !== undefined && semanticEqual(before, after)
}

const verbOf = ({ info }: ServerRequest) => info?.verb ?? ''

function waitForTurn(entry: FlowRequest, mostMs: number | undefined, clock: Clock, ratios: ReadWriteRatios): Promise<boolean> {
  const { metrics } = entry.flow
  const verb = verbOf(entry.request)
  ratios.add('waiting', verb, 1)
  return new Promise((resolve) => {
    const { cancellation } = entry.request
    const settle = (execute: boolean) => {
      timer?.cancel()
      cancellation.onAbort(undefined)
      const seconds = (clock.monotonicMs() - entry.arrivalMs) / 1000
      ratios.add('waiting', verb, -1)
      if (execute) {
        ratios.add('executing', verb, 1)
        metrics.dispatched.inc()
      }
      ;(execute ? metrics.waitedAndRan : metrics.waitedInVain).observe(seconds)
      resolve(execute)
    }
    const leave = () => {
      if (entry.set.cancel(entry)) settle(false)
    }
    const timer = mostMs === undefined ? undefined : clock.timer(mostMs, leave)
    entry.dispatched = () => settle(true)
    cancellation.onAbort(leave)
  })
}

/** Returns a function that stops it. */
function repeat(work: () => void, clock: Clock): () => void {
  let timer = clock.timer(adjustmentMs, again)
  function again() {
    work()
    timer = clock.timer(adjustmentMs, again)
  }
  return () => timer.cancel()
}
