/**
 * Runs a chosen set of controllers over one set of informers (L3). Each can be switched off and on while the others go on.
 * Upstream: cmd/kube-controller-manager/app/controllermanager.go, cmd/cloud-provider genericcontrollermanager IsControllerEnabled (v1.36).
 */
import type { Clock } from '#base/clock'
import type { Component } from '#base/component'
import type { Logger } from '#base/log'
import type { Metrics } from '#base/metrics'
import type { Random } from '#base/random'
import { createSharedInformerFactory } from '#client/cache/sharedInformerFactory'
import type { Client } from '#client/client'
import { createEventRecorder, type EventRecorder } from '#client/eventRecorder'
import type { ControllerContext, ControllerDescriptor, ControllerOptions } from './controller.ts'

export interface ControllerManagerDeps {
  readonly client: Client
  readonly clock: Clock
  readonly random: Random
  readonly log: Logger
  readonly metrics: Metrics
}

export interface ControllerManagerOptions extends ControllerOptions {
  /** As upstream's --controllers: '*', 'name', '-name'. Default ['*']. */
  readonly controllers?: readonly string[] | undefined
}

export interface ControllerManager extends Component {
  /** Names of the controllers that run now. */
  running(): readonly string[]
  /** Starts or stops one controller; resolves when a stopped one has ended. @throws Error for an unknown name. */
  setEnabled(name: string, enabled: boolean): Promise<void>
}

export function createControllerManager(
  deps: ControllerManagerDeps,
  descriptors: readonly ControllerDescriptor[],
  options: ControllerManagerOptions = {},
): ControllerManager {
  const wanted = new Set(descriptors.filter((descriptor) => isEnabled(descriptor, options.controllers ?? ['*'])).map(({ name }) => name))
  checkNames(descriptors, options.controllers ?? [])
  const running = new Map<string, { readonly stop: AbortController; readonly done: Promise<void> }>()
  let start: ((descriptor: ControllerDescriptor) => void) | undefined

  return {
    name: 'kube-controller-manager',
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
      const { client, clock, random, log, metrics } = deps
      const recorders = new Map<string, EventRecorder>()
      const informers = createSharedInformerFactory(client, { clock, random, log })
      const context: ControllerContext = {
        client,
        informers,
        clock,
        random,
        log,
        metrics,
        options,
        events: (component) => {
          const recorder = recorders.get(component) ?? createEventRecorder({ client, clock, random, log }, { component }, signal)
          recorders.set(component, recorder)
          return recorder
        },
      }
      start = (descriptor) => {
        const stop = new AbortController()
        const component = descriptor.create(context)
        const done = component
          .run(AbortSignal.any([signal, stop.signal]))
          .catch((error: unknown) => log.error(error, 'A controller failed', { controller: descriptor.name }))
          .finally(() => running.delete(descriptor.name))
        running.set(descriptor.name, { stop, done })
      }
      for (const descriptor of descriptors) if (wanted.has(descriptor.name)) start(descriptor)
      await informers.run(signal)
      await Promise.all([...running.values()].map(({ done }) => done))
      start = undefined
    },
  }
}

function find(descriptors: readonly ControllerDescriptor[], name: string): ControllerDescriptor | undefined {
  return descriptors.find((descriptor) => descriptor.name === name || descriptor.aliases.includes(name))
}

/** The first mention of a controller by name decides; '*' means all that are on by default. */
export function isEnabled(descriptor: ControllerDescriptor, controllers: readonly string[]): boolean {
  const names = [descriptor.name, ...descriptor.aliases]
  for (const entry of controllers) {
    if (names.includes(entry)) return true
    if (entry.startsWith('-') && names.includes(entry.slice(1))) return false
  }
  return controllers.includes('*') && !descriptor.disabledByDefault
}

function checkNames(descriptors: readonly ControllerDescriptor[], controllers: readonly string[]): void {
  for (const entry of controllers) {
    const name = entry.startsWith('-') ? entry.slice(1) : entry
    if (name !== '*' && !find(descriptors, name)) throw new Error(`"${name}" is not in the list of known controllers`)
  }
}
