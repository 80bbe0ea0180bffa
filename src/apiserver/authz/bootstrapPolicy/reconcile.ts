/**
 * Reconciles the bootstrap policy at start (L3): creates missing objects and restores removed rules and subjects, but never removes users' additions,
 * nor changes objects with the annotation autoupdate "false".
 * Upstream: component-helpers/auth/rbac/reconciliation, pkg/registry/rbac/rest/storage_rbac.go (v1.36).
 */
import type { ClusterRole, PolicyRule, RoleBinding, RoleRef, Subject } from '#api/gen/types/rbac.v1'
import type { Frozen, KubeObject } from '#api/machinery/meta'
import { isStatus } from '#api/machinery/status'
import type { FeatureGateSettings } from '#base/featureGates'
import type { Transport } from '#client/transport'
import { uncovered } from '../coverage.ts'
import { autoUpdateAnnotation, bootstrapClusterRoleBindings, bootstrapClusterRoles, bootstrapRoleBindings, bootstrapRoles } from './objects.ts'

type RoleOrBinding = KubeObject & { rules?: PolicyRule[] | undefined; aggregationRule?: unknown; roleRef?: RoleRef; subjects?: Subject[] | undefined }

const root = '/apis/rbac.authorization.k8s.io/v1'

/** Needs a user in system:masters: others cannot grant permissions that they do not hold. Runs as a post-start hook. */
export async function reconcileBootstrapPolicy(transport: Transport, signal: AbortSignal, gates: FeatureGateSettings = {}): Promise<void> {
  await Promise.all([
    reconcileAll(transport, 'clusterroles', bootstrapClusterRoles(gates), signal),
    reconcileAll(transport, 'clusterrolebindings', bootstrapClusterRoleBindings(gates), signal),
    reconcileAll(transport, 'roles', bootstrapRoles(), signal),
    reconcileAll(transport, 'rolebindings', bootstrapRoleBindings(), signal),
  ])
}

/** All at once, so that a new cluster's hundred objects share a few flushes of the disk. */
async function reconcileAll(transport: Transport, resource: string, wanted: readonly RoleOrBinding[], signal: AbortSignal): Promise<void> {
  // One list instead of a hundred gets.
  const list = (await transport.request({ method: 'GET', path: `${root}/${resource}` }, signal)).body as { items: Frozen<RoleOrBinding>[] }
  const found = new Map(list.items.map((item) => [`${item.metadata.namespace ?? ''}/${item.metadata.name}`, item]))
  await Promise.all(
    wanted.map((object) => {
      const { namespace, name } = object.metadata
      const path = namespace ? `${root}/namespaces/${namespace}/${resource}` : `${root}/${resource}`
      return reconcileOne(transport, path, object, found.get(`${namespace ?? ''}/${name}`), signal)
    }),
  )
}

async function reconcileOne(
  transport: Transport,
  path: string,
  wanted: RoleOrBinding,
  found: Frozen<RoleOrBinding> | undefined,
  signal: AbortSignal,
): Promise<void> {
  try {
    if (!found) {
      await transport.request({ method: 'POST', path, body: wanted }, signal)
      return
    }
    const merged = mergePolicy(wanted, found)
    const at = `${path}/${encodeURIComponent(wanted.metadata.name ?? '')}`
    if (merged === 'replace') {
      // A binding's role cannot be changed, so the binding is recreated.
      await transport.request({ method: 'DELETE', path: at }, signal)
      await transport.request({ method: 'POST', path, body: wanted }, signal)
    } else if (merged) await transport.request({ method: 'PUT', path: at, body: merged }, signal)
  } catch (error) {
    // Another server is doing the same work.
    if (!isStatus(error, 'AlreadyExists') && !isStatus(error, 'Conflict')) throw error
  }
}

/** The merged object; undefined when the existing one needs no change. */
export function mergePolicy(wanted: RoleOrBinding, found: Frozen<RoleOrBinding>): RoleOrBinding | 'replace' | undefined {
  if (found.metadata.annotations?.[autoUpdateAnnotation] === 'false') return undefined
  if (wanted.roleRef && (found.roleRef?.kind !== wanted.roleRef.kind || found.roleRef.name !== wanted.roleRef.name)) return 'replace'
  const labels = { ...found.metadata.labels, ...wanted.metadata.labels }
  const annotations = { ...found.metadata.annotations, ...wanted.metadata.annotations }
  const sameKeys = (merged: object, had: object | undefined) => Object.keys(merged).length === Object.keys(had ?? {}).length
  const rules = wanted.rules ? uncovered(found.rules ?? [], wanted.rules) : []
  const subjects = missingSubjects(wanted.subjects, (found as Frozen<RoleBinding>).subjects)
  const aggregates = wanted.aggregationRule !== undefined && (found as Frozen<ClusterRole>).aggregationRule === undefined
  if (
    rules.length === 0 &&
    subjects.length === 0 &&
    !aggregates &&
    sameKeys(labels, found.metadata.labels) &&
    sameKeys(annotations, found.metadata.annotations)
  )
    return undefined
  return {
    ...(found as unknown as RoleOrBinding),
    metadata: { ...(found.metadata as KubeObject['metadata']), labels, annotations },
    ...(rules.length > 0 ? { rules: [...((found.rules ?? []) as PolicyRule[]), ...rules] } : {}),
    ...(subjects.length > 0 ? { subjects: [...((found.subjects ?? []) as Subject[]), ...subjects] } : {}),
    ...(aggregates ? { aggregationRule: wanted.aggregationRule } : {}),
  }
}

function missingSubjects(wanted: readonly Subject[] | undefined, found: readonly Frozen<Subject>[] | undefined): Subject[] {
  const same = (a: Subject) => (b: Frozen<Subject>) => a.kind === b.kind && a.name === b.name && (a.namespace ?? '') === (b.namespace ?? '')
  return (wanted ?? []).filter((subject) => !found?.some(same(subject)))
}
