/** The list of kinds that have a file of their own (L1), group by group. Adding a kind is one line here. */
import type { KubeObject } from '#api/machinery/meta'
import { deployment } from './apps/deployment.ts'
import { replicaSet } from './apps/replicaSet.ts'
import { lease } from './coordination/lease.ts'
import { configMap } from './core/configMap.ts'
import { endpoints } from './core/endpoints.ts'
import { coreEvent, event } from './core/event.ts'
import { namespace } from './core/namespace.ts'
import { node } from './core/node.ts'
import { pod } from './core/pod/pod.ts'
import { secret } from './core/secret.ts'
import { service } from './core/service.ts'
import { serviceAccount } from './core/serviceAccount.ts'
import type { KindStrategy } from './defineKind.ts'
import { endpointSlice } from './discovery/endpointSlice.ts'
import { clusterRole, role } from './rbac/role.ts'
import { clusterRoleBinding, roleBinding } from './rbac/roleBinding.ts'
import { priorityClass } from './scheduling/priorityClass.ts'

export const strategies: readonly KindStrategy[] = [
  erased(namespace),
  erased(node),
  erased(pod),
  erased(service),
  erased(endpoints),
  erased(serviceAccount),
  erased(secret),
  erased(configMap),
  erased(coreEvent),
  erased(event),
  erased(lease),
  erased(endpointSlice),
  erased(deployment),
  erased(replicaSet),
  erased(role),
  erased(clusterRole),
  erased(roleBinding),
  erased(clusterRoleBinding),
  erased(priorityClass),
]

const byGroupKind: ReadonlyMap<string, KindStrategy> = new Map(strategies.map((strategy) => [`${strategy.group}/${strategy.kind}`, strategy]))

/** The strategy of a kind, or undefined when the generic rules are all there is. */
export function strategyFor(group: string, kind: string): KindStrategy | undefined {
  return byGroupKind.get(`${group}/${kind}`)
}

/** The registry calls each strategy only with objects of its own kind, which the list's type cannot say. */
function erased<T extends KubeObject>(strategy: KindStrategy<T>): KindStrategy {
  return strategy as unknown as KindStrategy
}
