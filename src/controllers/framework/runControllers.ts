/**
 * Runs controllers as a process of their own does (L3): one set of caches, the lead if asked for, health and metrics on a port, and a stop that
 * lets work under way end. Published as skiff-kubernetes/controller. Upstream: controller-runtime/pkg/manager.
 */

import type { Clock } from '#base/clock'
import { type Exposition, exposition } from '#base/exposition'
import type { Logger } from '#base/log'
import type { MetricFamily } from '#base/metricFamily'
import { type Metrics, noMetrics } from '#base/metrics'
import { unlessAborted } from '#base/orAborted'
import type { Random } from '#base/random'
import { createSharedInformerFactory } from '#client/cache/sharedInformerFactory'
import type { Client } from '#client/client'
import { type LeaderElectionOptions, runLeaderElected } from '#client/leaderElection'
import { createControllerContext } from './context.ts'
import type { DefinedController, RunningController } from './defineController.ts'
import { serveHealth } from './healthServer.ts'

export interface RunControllersDeps {
  readonly client: Client
  readonly clock: Clock
  readonly random: Random
  readonly log: Logger
  /** With `families`, or `render`, which is Prometheus' text, the health port also serves them. */
  readonly metrics?: (Metrics & { families?(): readonly MetricFamily[]; render?(): string }) | undefined
}

export interface RunControllersOptions {
  /** Caches hold objects of this namespace only. Default: all namespaces. */
  readonly namespace?: string | undefined
  /** One of several processes works at a time. */
  readonly leaderElection?: LeaderElectionOptions | undefined
  /** Serves /healthz, /readyz and /metrics; port 0 takes a free one. */
  readonly health?: { readonly port: number; readonly host?: string | undefined; readonly onListening?: ((port: number) => void) | undefined } | undefined
  /** How long reconciles may take after a stop. Then their signal aborts, and those that ignore it are abandoned. Default 30 s. */
  readonly gracefulStopMs?: number | undefined
}

const defaultGracefulStopMs = 30_000

function scrape({ metrics }: RunControllersDeps, accept: string | undefined): Exposition {
  return metrics?.families
    ? exposition(metrics.families(), accept)
    : { contentType: 'text/plain; version=0.0.4; charset=utf-8', body: metrics?.render?.() ?? '' }
}

/**
 * Works until `signal` aborts; resolves when everything has ended.
 * @throws Error when the lead is lost, or when reconciles continue after the graceful stop, with their names. Start again, best as a new process.
 */
export async function runControllers(
  deps: RunControllersDeps,
  controllers: readonly DefinedController[],
  options: RunControllersOptions,
  signal: AbortSignal,
): Promise<void> {
  const { client, clock, random, log, metrics = noMetrics } = deps
  const informers = createSharedInformerFactory(client, deps, { namespace: options.namespace })
  const over = new AbortController()
  const state = { ready: false }
  const health = options.health && (await serveHealth(options.health, { ready: () => state.ready, metrics: (accept) => scrape(deps, accept) }))
  // The caches outlive the controllers: work under way still reads them.
  const caching = informers.run(over.signal)
  const work = async (working: AbortSignal, writer: Client, lost?: AbortSignal) => {
    const graceMs = options.gracefulStopMs ?? defaultGracefulStopMs
    const hard = hardStop(working, lost, graceMs, clock)
    try {
      const context = createControllerContext({ client: writer, informers, clock, random, log, metrics }, over.signal)
      const components = controllers.map((controller) => controller.create(context, hard.signal))
      const running = components.map((component) => component.run(working))
      void informers.synced(working).then(
        () => {
          state.ready = true
        },
        () => {},
      )
      const left = await allEnded(Promise.all(running), hard.signal, clock)
      if (left) throw stillRunning(components, graceMs)
    } finally {
      hard.end()
    }
  }
  try {
    if (!options.leaderElection) await work(signal, client)
    else {
      // A standby process is ready to take over.
      state.ready = true
      const lead = (leading: AbortSignal, { fence, lost }: { fence(of: Client): Client; lost: AbortSignal }) => work(leading, fence(client), lost)
      await runLeaderElected({ ...deps, metrics }, { releaseOnCancel: true, ...options.leaderElection }, lead, signal)
    }
  } finally {
    over.abort(signal.reason)
    await caching
    await health?.close()
    log.v(2).info('Controllers have stopped', { controllers: controllers.map(({ name }) => name) })
  }
}

/** Turns of the event loop in which work that follows its signal ends. */
const turnsAfterHardStop = 20

/** Waits for `running`, but after `hard` aborts only a few turns longer. @returns whether something still runs */
async function allEnded(running: Promise<unknown>, hard: AbortSignal, clock: Clock): Promise<boolean> {
  let isOver = false
  const over = running.then(() => {
    isOver = true
  })
  await unlessAborted(over, hard)
  for (let turns = 0; turns < turnsAfterHardStop && !isOver; turns++) await Promise.race([over, clock.turn()])
  return !isOver
}

function stillRunning(components: readonly RunningController[], graceMs: number): Error {
  const busy = components.flatMap((component) => component.underWay().map((key) => `${component.name} reconciles ${key}`))
  return new Error(`controllers did not stop within ${graceMs} ms: ${busy.join(', ')}`)
}

/** Aborts at once when the lead is lost, and so long after a stop that work under way may end. */
function hardStop(stop: AbortSignal, lost: AbortSignal | undefined, graceMs: number, clock: Clock): { readonly signal: AbortSignal; end(): void } {
  const hard = new AbortController()
  let cancel = () => {}
  const begin = () => {
    if (lost?.aborted) return hard.abort(lost.reason)
    const timer = clock.timer(graceMs, () => hard.abort(new Error(`work did not end within ${graceMs} ms of the stop`)))
    cancel = () => timer.cancel()
  }
  if (stop.aborted) begin()
  else stop.addEventListener('abort', begin, { once: true })
  return {
    signal: hard.signal,
    end: () => {
      stop.removeEventListener('abort', begin)
      cancel()
    },
  }
}
