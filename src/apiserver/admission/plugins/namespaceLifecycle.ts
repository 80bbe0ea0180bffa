/**
 * Refuses writes in a missing namespace, creations in a terminating one, and deletion of the system namespaces (L3).
 * Upstream: apiserver/pkg/admission/plugin/namespace/lifecycle.
 */
import type { Namespace } from '#api/gen/types/core.v1'
import type { Frozen } from '#api/machinery/meta'
import { notFound, StatusError } from '#api/machinery/status'
import type { Clock } from '#base/clock'
import { LruCache } from '#base/lruCache'
import type { AdmissionAttributes, AdmissionPlugin } from '../admission.ts'
import { refuse } from '../attributes.ts'
import { type Lookup, namespaceResource } from '../lookup.ts'

const immortal: ReadonlySet<string> = new Set(['default', 'kube-system', 'kube-public'])
/** How long after a namespace's deletion an active state in the cache is not trusted. */
const doubtMs = 30_000
const mostDoubted = 100

export function namespaceLifecycle(lookup: Lookup, clock: Clock): AdmissionPlugin {
  const doubted = new LruCache<string, { readonly untilMs: number }>(mostDoubted)
  const isDoubted = (name: string) => (doubted.get(name)?.untilMs ?? 0) > clock.monotonicMs()
  return {
    name: 'NamespaceLifecycle',
    handles: (operation) => operation === 'CREATE' || operation === 'UPDATE' || operation === 'DELETE',
    admit: (attributes) => {
      const { operation, kind, name, namespace, resource } = attributes
      if (kind.group === '' && kind.kind === 'Namespace') {
        if (operation !== 'DELETE') return undefined
        if (immortal.has(name)) throw refuse(attributes, 'this namespace may not be deleted')
        doubted.set(name, { untilMs: clock.monotonicMs() + doubtMs })
        return undefined
      }
      if (namespace === '' || operation === 'DELETE') return undefined
      // An access review may name a namespace that does not exist yet.
      if (resource.group === 'authorization.k8s.io' && resource.resource === 'localsubjectaccessreviews') return undefined
      const found = lookup.cached<Namespace>(namespaceResource, '', namespace)
      if (found && !(found.status?.phase === 'Active' && isDoubted(namespace))) return check(attributes, found)
      return lookup.live<Namespace>(namespaceResource, '', namespace).then((stored) => check(attributes, stored))
    },
  }
}

function check(attributes: AdmissionAttributes, found: Frozen<Namespace> | undefined): void {
  const { namespace } = attributes
  if (!found) throw notFound(namespaceResource, namespace)
  if (attributes.operation !== 'CREATE') return
  if (found.status?.phase !== 'Terminating' && !found.metadata.deletionTimestamp) return
  const refusal = refuse(attributes, `unable to create new content in namespace ${namespace} because it is being terminated`)
  const cause = { reason: 'NamespaceTerminating', message: `namespace ${namespace} is being terminated`, field: 'metadata.namespace' }
  throw new StatusError('Forbidden', refusal.message, { details: { ...refusal.details, causes: [cause] } })
}
