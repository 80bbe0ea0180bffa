/**
 * Fills aggregated ClusterRoles, such as admin, edit and view, with the rules of the roles that their selectors choose (L3).
 * Upstream: pkg/controller/clusterroleaggregation (v1.36).
 */
import type { ClusterRole, PolicyRule } from '#api/gen/types/rbac.v1'
import { selectorOf } from '#api/machinery/labelSelector'
import type { Frozen } from '#api/machinery/meta'
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
      const rules = aggregatedRules(role, informer.store.list())
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

/** The rules of the chosen roles in the order of their names, each once; never the role's own. */
export function aggregatedRules(role: Frozen<ClusterRole>, all: readonly Frozen<ClusterRole>[]): Frozen<PolicyRule>[] {
  const selectors = (role.aggregationRule?.clusterRoleSelectors ?? []).map((selector) => selectorOf(selector))
  const sorted = [...all].sort((a, b) => ((a.metadata.name ?? '') < (b.metadata.name ?? '') ? -1 : 1))
  const rules = new Map<string, Frozen<PolicyRule>>()
  for (const selector of selectors) {
    for (const other of sorted) {
      if (other.metadata.name === role.metadata.name || !selector.matches(other.metadata.labels ?? {})) continue
      for (const rule of other.rules ?? []) rules.set(JSON.stringify(rule), rule)
    }
  }
  return [...rules.values()]
}
