/**
 * Nothing is written in a namespace that is not there, and nothing created in one that is going; the system's own namespaces stay (L3).
 * Upstream: apiserver/pkg/admission/plugin/namespace/lifecycle.
 */
import type { Namespace } from '#api/gen/types/core.v1'
import { notFound, StatusError } from '#api/machinery/status'
import type { AdmissionAttributes, AdmissionPlugin, ObjectReader } from '../admission.ts'
import { isResource, refuse } from '../attributes.ts'

const namespaces = { group: '', resource: 'namespaces' }
const immortal: ReadonlySet<string> = new Set(['default', 'kube-system', 'kube-public'])

export function namespaceLifecycle(reader: ObjectReader): AdmissionPlugin {
  return {
    name: 'NamespaceLifecycle',
    handles: (operation) => operation === 'CREATE' || operation === 'UPDATE' || operation === 'DELETE',
    admit: (attributes) => {
      if (attributes.operation === 'DELETE') {
        if (isResource(attributes, '', 'namespaces') && immortal.has(attributes.name)) throw refuse(attributes, 'this namespace may not be deleted')
        return
      }
      checkNamespace(attributes, reader)
    },
  }
}

function checkNamespace(attributes: AdmissionAttributes, reader: ObjectReader): void {
  const { namespace, resource } = attributes
  if (!namespace || (resource.group === '' && resource.resource === 'namespaces')) return
  // Whether one may do something in a namespace can be asked before the namespace exists.
  if (resource.group === 'authorization.k8s.io' && resource.resource === 'localsubjectaccessreviews') return
  const found = reader.get<Namespace>(namespaces, '', namespace)
  if (!found) throw notFound(namespaces, namespace)
  if (attributes.operation !== 'CREATE') return
  if (found.status.phase !== 'Terminating' && !found.metadata.deletionTimestamp) return
  const refusal = refuse(attributes, `unable to create new content in namespace ${namespace} because it is being terminated`)
  const cause = { reason: 'NamespaceTerminating', message: `namespace ${namespace} is being terminated`, field: 'metadata.namespace' }
  throw new StatusError('Forbidden', refusal.message, { details: { ...refusal.details, causes: [cause] } })
}
