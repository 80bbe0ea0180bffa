/** The verdicts on Gateways and routes (L3): each is worked out again when it may have changed, and the table of routes with it. */
import { type Frozen, keyOf } from '#api/machinery/meta'
import { type GatewaySources, kindOf, secretsOf, servicesOf } from './gatewaySources.ts'
import type { Parent, ParentKey } from './model/gateway/attachments.ts'
import type { GatewayTable } from './model/gateway/gatewayTable.ts'
import { type Gateway, gatewayControllerName, type HttpRoute } from './model/gateway/kinds.ts'
import { type CompiledGateway, compileGateway, gatewayOfSet } from './model/gateway/listenerSets.ts'
import { attachedOf, judgeRoute, type RouteVerdict } from './model/gateway/verdicts.ts'
import type { ClusterView } from './model/gateway/view.ts'

export interface GatewayVerdict extends CompiledGateway {
  readonly gateway: Frozen<Gateway>
}

type Pause = () => Promise<void> | undefined

export interface Verdicts {
  /** By `namespace/name`. */
  readonly gateways: ReadonlyMap<string, GatewayVerdict>
  /** By `KIND/namespace/name`. */
  readonly routes: ReadonlyMap<string, RouteVerdict>
  /** @param dirtyRoutes gets the routes whose verdicts may have changed */
  takeGateway(key: string, dirtyRoutes: Set<string>, pause: Pause): Promise<void>
  /** @param changed gets the Gateways with another count of routes, perhaps, and the policies of the route's Services */
  takeRoute(key: string, changed: { readonly gateways: Set<string>; readonly policies: Set<string> }, pause: Pause): Promise<void>
}

export function createVerdicts(sources: GatewaySources, table: GatewayTable, view: ClusterView): Verdicts {
  const gateways = new Map<string, GatewayVerdict>()
  const routes = new Map<string, RouteVerdict>()

  function parentOf({ kind, key }: ParentKey): Parent | undefined {
    const set = kind === 'ListenerSet' ? sources.sets.store.get(key) : undefined
    const gateway = kind === 'Gateway' ? key : set && gatewayOfSet(set)
    const verdict = gateway === undefined ? undefined : gateways.get(gateway)
    const listeners = verdict?.listeners.filter((listener) => listener.set === (kind === 'Gateway' ? undefined : key))
    return gateway !== undefined && listeners ? { gateway, listeners } : undefined
  }

  return {
    gateways,
    routes,
    async takeGateway(key, dirtyRoutes, pause) {
      const gateway = sources.gateways.store.get(key)
      const isOurs = gateway && sources.classes.store.get(gateway.spec.gatewayClassName)?.spec.controllerName === gatewayControllerName
      if (!isOurs && !gateways.has(key)) return
      // Read certificates are kept: a long list of them takes several turns.
      const sets = sources.sets.store.byIndex('gateway', key)
      for (const secret of isOurs ? [gateway, ...sets].flatMap(secretsOf) : []) {
        view.problemOfSecret(secret)
        await pause()
      }
      const before = gateways.get(key)?.sets ?? []
      const compiled = isOurs ? compileGateway(gateway, sets, view) : undefined
      if (compiled && isOurs) gateways.set(key, { gateway, ...compiled })
      else gateways.delete(key)
      table.setListeners(key, compiled?.listeners)
      const parents = [...before, ...(compiled?.sets ?? [])].map((set) => `ListenerSet ${set.key}`)
      for (const parent of [`Gateway ${key}`, ...new Set(parents)]) for (const route of sources.routes.byIndex('parent', parent)) dirtyRoutes.add(route)
    },
    async takeRoute(key, changed, pause) {
      const route = sources.routes.get(key)
      const before = table.get(key)
      for (const service of [...servicesIn(routes.get(key)?.route), ...servicesIn(route)]) {
        for (const policy of sources.policies.store.byIndex('service', service)) changed.policies.add(keyOf(policy))
      }
      const verdict = route && judgeRoute(kindOf(key), route, view, parentOf)
      if (verdict) routes.set(key, verdict)
      else routes.delete(key)
      const now = verdict && attachedOf(key, verdict)
      for (const _ of table.update(key, now)) await pause()
      for (const gateway of [...(before?.listeners.keys() ?? []), ...(now?.listeners.keys() ?? [])]) changed.gateways.add(gateway)
    },
  }
}

function servicesIn(route: Frozen<HttpRoute> | undefined): readonly string[] {
  try {
    return route ? servicesOf(route) : []
  } catch {
    // A route that cannot be read leads nowhere.
    return []
  }
}
