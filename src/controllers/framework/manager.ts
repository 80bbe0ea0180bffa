/**
 * Runs a chosen set of controllers over one set of informers (L3). Each can be switched off and on while the others continue.
 * Upstream: cmd/kube-controller-manager/app/controllermanager.go, cmd/cloud-provider genericcontrollermanager IsControllerEnabled (v1.36).
 */
import { type AbortScope, abortScope } from '#base/abortScope'
import type { Clock } from '#base/clock'
import type { Component } from '#base/component'
import { type FeatureGateSettings, featureEnabled } from '#base/featureGates'
import type { Logger } from '#base/log'
import type { Metrics } from '#base/metrics'
import type { Random } from '#base/random'
import type { Tracer } from '#base/traceContext'
import { createSharedInformerFactory, type SharedInformerFactory } from '#client/cache/sharedInformerFactory'
import type { Client } from '#client/client'
import type { ObjectTrace } from '#trace/objectTrace'
import { createControllerContext } from './context.ts'
import type { ClientRateFactors, ControllerContext, ControllerDescriptor, WorkerOptions } from './controller.ts'

export interface ControllerManagerDeps {
  /** Acts as upstream's system:kube-controller-manager. */
  readonly client: Client
  /** Fills the shared informers. Default: `client`. */
  readonly informerClient?: Client | undefined
  /** Client of a controller that acts as this service account of kube-system. */
  clientFor(serviceAccount: string, rate?: ClientRateFactors): Client
  readonly clock: Clock
  readonly random: Random
  readonly log: Logger
  readonly metrics: Metrics
  /** Absent: no spans are made. */
  readonly tracer?: Tracer | undefined
  readonly trace?: ObjectTrace | undefined
  /** See ReflectorDeps. */
  readonly minWatchSeconds?: number | undefined
}

export interface ControllerManagerOptions extends WorkerOptions {
  /** As upstream's --controllers: '*', 'name', '-name'. Default ['*']. */
  readonly controllers?: readonly string[] | undefined
  /** Values of --feature-gates; absent gates have their default of v1.36. */
  readonly featureGates?: FeatureGateSettings | undefined
}

export interface ControllerManager extends Component {
  /** Names of the controllers that run now. */
  running(): readonly string[]
  /** Starts or stops one controller; resolves when a stopped one has ended. @throws Error for an unknown name. */
  setEnabled(name: string, enabled: boolean): Promise<void>
}

const managerName = 'kube-controller-manager'

/** @param options the manager's options and the options of every controller */
export function createControllerManager<Options extends object>(
  deps: ControllerManagerDeps,
  descriptors: readonly ControllerDescriptor<Options>[],
  options: ControllerManagerOptions & Options,
): ControllerManager {
  const { controllers: named = ['*'], featureGates = {} } = options
  const hasGate = ({ requiredFeatureGate: gate }: Identity) => gate === undefined || featureEnabled(featureGates, gate)
  const wanted = new Set(descriptors.filter((one) => hasGate(one) && isEnabled(one, named)).map(({ name }) => name))
  checkNames(descriptors, options.controllers ?? [])
  const running = new Map<string, { readonly stop: AbortScope; readonly done: Promise<void> }>()
  let start: ((descriptor: ControllerDescriptor<Options>) => void) | undefined
  const runningGauge = deps.metrics.gauge({
    name: 'running_managed_controllers',
    help: '1 for each controller that runs here.',
    labels: ['name', 'manager'],
  })

  /** Each in a turn of its own: all of them, with the lists of their informers, take tens of milliseconds, and requests would wait. */
  const startAll = async (signal: AbortSignal) => {
    for (const descriptor of descriptors) {
      if (signal.aborted) return
      if (!wanted.has(descriptor.name) || running.has(descriptor.name)) continue
      start?.(descriptor)
      await deps.clock.turn()
    }
  }

  return {
    name: managerName,
    running: () => [...running.keys()],
    async setEnabled(name, enabled) {
      const descriptor = find(descriptors, name)
      if (!descriptor) throw new Error(`"${name}" is not in the list of known controllers`)
      if (enabled) wanted.add(descriptor.name)
      else wanted.delete(descriptor.name)
      const there = running.get(descriptor.name)
      if (enabled && !there) start?.(descriptor)
      if (!enabled && there) {
        there.stop.abort(new Error(`${descriptor.name} was switched off`))
        await there.done
      }
    },
    async run(signal) {
      const { log } = deps
      const informers = createSharedInformerFactory(deps.informerClient ?? deps.client, deps)
      const contextOf = contexts(deps, informers, options, signal)
      start = (descriptor) => {
        const stop = abortScope(signal)
        const create = () => descriptor.create(contextOf(descriptor), options)
        const { name } = descriptor
        const done = keepRunning(create, { clock: deps.clock, log }, stop.signal).finally(() => {
          stop[Symbol.dispose]()
          running.delete(name)
          runningGauge.set(0, { name, manager: managerName })
        })
        running.set(name, { stop, done })
        runningGauge.set(1, { name, manager: managerName })
      }
      await Promise.all([informers.run(signal), startAll(signal)])
      await Promise.all([...running.values()].map(({ done }) => done))
      start = undefined
    },
  }
}

/** Pause before a failed controller is created again. Upstream's process exits and is restarted. */
const restartPauseMs = 1_000

async function keepRunning(create: () => Component, { clock, log }: Pick<ControllerManagerDeps, 'clock' | 'log'>, signal: AbortSignal): Promise<void> {
  while (!signal.aborted) {
    const component = create()
    try {
      return await component.run(signal)
    } catch (error) {
      if (signal.aborted) return
      log.error(error, 'A controller failed, starting it again', { controller: component.name })
    }
    await clock.sleep(restartPauseMs, signal).catch(() => {})
  }
}

type Identity = Omit<ControllerDescriptor, 'create'>

/** What each controller works with: all share the informers, each has its own client and recorders, kept while it is off. */
function contexts(deps: ControllerManagerDeps, informers: SharedInformerFactory, { concurrentSyncs }: ControllerManagerOptions, signal: AbortSignal) {
  const { clock, random, log, metrics, tracer, trace } = deps
  const made = new Map<string, ControllerContext>()
  const create = (client: Client) => createControllerContext({ client, informers, clock, random, log, metrics, tracer, trace, concurrentSyncs }, signal)
  return ({ name, serviceAccount, actsAsManager, clientRate }: Identity): ControllerContext => {
    const context = made.get(name) ?? create(actsAsManager ? deps.client : deps.clientFor(serviceAccount, clientRate))
    made.set(name, context)
    return context
  }
}

function find<D extends Identity>(descriptors: readonly D[], name: string): D | undefined {
  return descriptors.find((descriptor) => descriptor.name === name || descriptor.aliases.includes(name))
}

/** By its name, or one that it had before. */
export function isKnownController(descriptors: readonly Identity[], name: string): boolean {
  return find(descriptors, name) !== undefined
}

/** The first mention of a controller by name decides; '*' means all that are on by default. */
export function isEnabled(descriptor: Identity, controllers: readonly string[]): boolean {
  const names = [descriptor.name, ...descriptor.aliases]
  for (const entry of controllers) {
    if (names.includes(entry)) return true
    if (entry.startsWith('-') && names.includes(entry.slice(1))) return false
  }
  return controllers.includes('*') && !descriptor.disabledByDefault
}

function checkNames(descriptors: readonly Identity[], controllers: readonly string[]): void {
  for (const entry of controllers) {
    const name = entry.startsWith('-') ? entry.slice(1) : entry
    if (name !== '*' && !find(descriptors, name)) throw new Error(`"${name}" is not in the list of known controllers`)
  }
}
