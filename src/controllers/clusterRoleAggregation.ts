/**
 * Fills aggregated ClusterRoles, such as admin, edit and view, with the rules of the roles that their selectors choose (L3).
 * Upstream: pkg/controller/clusterroleaggregation (v1.36).
 */
import type { ClusterRole, PolicyRule } from '#api/gen/types/rbac.v1'
import { selectorOf } from '#api/machinery/labelSelector'
import type { Frozen } from '#api/machinery/meta'
import type { Clock } from '#base/clock'
import { clusterRoles } from '#client/builtIn'
import type { ControllerContext, ControllerDescriptor } from './framework/controller.ts'
import { createReconciler } from './framework/reconciler.ts'

export const clusterRoleAggregation: ControllerDescriptor = {
  name: 'clusterrole-aggregation-controller',
  aliases: ['clusterrole-aggregation'],
  serviceAccount: 'clusterrole-aggregation-controller',
  create: createClusterRoleAggregation,
}

function createClusterRoleAggregation(context: ControllerContext) {
  const informer = context.informers.of(clusterRoles)
  const reconciler = createReconciler(context, {
    name: clusterRoleAggregation.name,
    queueName: 'ClusterRoleAggregator',
    workers: 5,
    async reconcile(name, signal) {
      const role = informer.lister.get({ name })
      if (!role?.aggregationRule) return undefined
      const rules = await aggregatedRules(role, informer.store.list(), context.clock)
      if (JSON.stringify(rules) === JSON.stringify(role.rules ?? [])) return undefined
      const body = { apiVersion: 'rbac.authorization.k8s.io/v1', kind: 'ClusterRole', metadata: { name }, rules }
      await context.client.of(clusterRoles).patch({ name }, 'apply', body, { fieldManager: 'clusterrole-aggregation-controller', force: true, signal })
      return undefined
    },
  })
  // A change of any role may be a change of every aggregated one.
  const enqueueAggregated = () => {
    for (const role of informer.store.list()) if (role.aggregationRule) reconciler.queue.add(role.metadata.name ?? '')
  }
  reconciler.watch(informer, { onAdd: enqueueAggregated, onUpdate: enqueueAggregated, onDelete: enqueueAggregated })
  return reconciler
}

/** Selectors that are tried before other work gets its turn. */
const selectorsPerTurn = 200

/** The rules of the chosen roles in the order of their names, each once; never the role's own. */
export async function aggregatedRules(role: Frozen<ClusterRole>, all: readonly Frozen<ClusterRole>[], clock: Clock): Promise<Frozen<PolicyRule>[]> {
  const selectors = role.aggregationRule?.clusterRoleSelectors ?? []
  const others = all.filter(({ metadata }) => metadata.name !== role.metadata.name).sort((a, b) => ((a.metadata.name ?? '') < (b.metadata.name ?? '') ? -1 : 1))
  const chosen = new Set<Frozen<ClusterRole>>()
  const tried = new Set<string>()
  for (const [index, one] of selectors.entries()) {
    if ((index + 1) % selectorsPerTurn === 0) await clock.turn()
    const text = JSON.stringify(one)
    if (tried.has(text)) continue
    tried.add(text)
    const selector = selectorOf(one)
    for (const other of others) if (!chosen.has(other) && selector.matches(other.metadata.labels ?? {})) chosen.add(other)
  }
  const rules = new Map<string, Frozen<PolicyRule>>()
  for (const { rules: own } of chosen) for (const rule of own ?? []) rules.set(JSON.stringify(rule), rule)
  return [...rules.values()]
}
