/**
 * The routes from one network namespace to the pods of the nodes (L3): follows the Node objects and runs the mode that keeps the kernel's routes in step.
 * What another mode left is removed at start.
 */
import type { Node } from '#api/gen/types/core.v1'
import type { Frozen } from '#api/machinery/meta'
import type { Component } from '#base/component'
import { createWakeUp } from '#base/wakeUp'
import { nodes } from '#client/builtIn'
import type { SharedInformerFactory } from '#client/cache/sharedInformerFactory'
import { podRoutes, type Route } from './podNetwork.ts'
import { routeModes } from './routes/index.ts'
import type { RouteMode, RouteModeDeps, WantedRoutes } from './routes/routeMode.ts'

export interface NodeRoutesDeps extends RouteModeDeps {
  readonly informers: SharedInformerFactory
  /** The modes to choose from; absent: all. */
  readonly modes?: readonly RouteMode[] | undefined
}

export interface NodeRoutesConfig {
  /** A mode's name; absent: the first. */
  readonly mode?: string | undefined
  /** The node whose routes they are, if it is one. */
  readonly nodeName?: string | undefined
  /** The routes that these nodes call for. */
  routesTo(nodes: readonly Frozen<Node>[]): readonly Route[]
}

export function createNodeRoutes(deps: NodeRoutesDeps, config: NodeRoutesConfig): Component {
  return { name: 'node-routes', run: (signal) => run(deps, config, signal) }
}

async function run(deps: NodeRoutesDeps, config: NodeRoutesConfig, signal: AbortSignal): Promise<void> {
  const { modes = routeModes, log, exec } = deps
  const chosen = config.mode === undefined ? modes[0] : modes.find(({ name }) => name === config.mode)
  if (!chosen) throw new Error(`route mode "${config.mode}" is not supported; there are: ${modes.map(({ name }) => name).join(', ')}`)
  for (const mode of modes) {
    if (mode === chosen) continue
    await mode.cleanUp(exec).catch((error) => log.error(error, 'Failed to remove the routes of another mode', { mode: mode.name }))
  }
  const informer = deps.informers.of(nodes)
  const changes = createWakeUp()
  const registration = informer.addHandler({ onAdd: changes.ring, onUpdate: changes.ring, onDelete: changes.ring })
  try {
    await informer.synced(signal)
    changes.ring()
    const next: WantedRoutes['next'] = async (until, atMostMs) => {
      const timer = atMostMs === undefined ? undefined : deps.clock.timer(atMostMs, changes.ring)
      await changes.wait(until)
      timer?.cancel()
      until.throwIfAborted()
    }
    const own = () => {
      const node = config.nodeName === undefined ? undefined : informer.lister.get({ name: config.nodeName })
      return node ? podRoutes([node], undefined) : []
    }
    await chosen.run(deps, { next, newest: () => config.routesTo(informer.store.list()), own }, signal)
  } catch (error) {
    if (!signal.aborted) throw error
  } finally {
    registration.remove()
  }
}
