/**
 * Setting an owner reference needs the right to delete the dependent; blocking the owner's deletion needs the right to finalize the owner (L3).
 * Off by default.
 * Upstream: plugin/pkg/admission/gc.
 */
import { semanticEqual } from '#api/machinery/equality'
import { type Frozen, type KubeObject, type OwnerReference, parseGroupVersion } from '#api/machinery/meta'
import type { AuthorizationAttributes, Authorizer } from '../../authz/authorizer.ts'
import { authorize } from '../../authz/union.ts'
import type { ObjectReader } from '../../core/objectReader.ts'
import type { AdmissionAttributes, AdmissionPlugin } from '../admission.ts'
import { isSubresource, refuse } from '../attributes.ts'

export function ownerReferencesPermissionEnforcement(reader: ObjectReader, authorizers: readonly Authorizer[]): AdmissionPlugin {
  return {
    name: 'OwnerReferencesPermissionEnforcement',
    handles: (operation) => operation === 'CREATE' || operation === 'UPDATE',
    async validate(attributes) {
      // A status write cannot change owners, so kubelets need no permission for it.
      if (isSubresource(attributes, '', 'pods', 'status')) return
      const now = attributes.object?.metadata?.ownerReferences ?? []
      const before = attributes.oldObject?.metadata.ownerReferences ?? []
      if (semanticEqual(now, before)) return
      if (attributes.operation === 'UPDATE') await mustDelete(authorizers, attributes)
      for (const reference of newlyBlocking(now, before)) await mustFinalize(reader, authorizers, attributes, reference)
    },
  }
}

const base = { verb: '', isResourceRequest: true, path: '', namespace: '', apiGroup: '', apiVersion: '', resource: '', subresource: '', name: '' }

async function mustDelete(authorizers: readonly Authorizer[], attributes: AdmissionAttributes): Promise<void> {
  const { user, namespace, resource, subresource, name } = attributes
  const wanted = {
    ...base,
    user,
    verb: 'delete',
    namespace,
    apiGroup: resource.group,
    apiVersion: resource.version,
    resource: resource.resource,
    subresource,
    name,
  }
  const { decision, reason } = await authorize(authorizers, wanted)
  if (decision !== 'allow') throw refuse(attributes, `cannot set an ownerRef on a resource you can't delete: ${reason}, <nil>`)
}

async function mustFinalize(
  reader: ObjectReader,
  authorizers: readonly Authorizer[],
  attributes: AdmissionAttributes,
  reference: OwnerReference,
): Promise<void> {
  const { apiVersion, kind, name } = reference
  const known = reader.ofKind?.(apiVersion, kind)
  if (!known) {
    const why = `no matches for kind "${kind}" in version "${apiVersion}"`
    throw refuse(attributes, `cannot set blockOwnerDeletion in this case because cannot find RESTMapping for APIVersion ${apiVersion} Kind ${kind}: ${why}`)
  }
  const { group, version } = parseGroupVersion(apiVersion)
  const wanted: AuthorizationAttributes = {
    ...base,
    user: attributes.user,
    verb: 'update',
    namespace: known.namespaced ? attributes.namespace : '',
    apiGroup: group,
    apiVersion: version,
    resource: known.resource,
    subresource: 'finalizers',
    name,
  }
  const { decision, reason } = await authorize(authorizers, wanted)
  if (decision === 'allow') return
  throw refuse(attributes, `cannot set blockOwnerDeletion if an ownerReference refers to a resource you can't set finalizers on: ${reason}, <nil>`)
}

function newlyBlocking(now: readonly OwnerReference[], before: Frozen<KubeObject>['metadata']['ownerReferences'] = []): readonly OwnerReference[] {
  return now.filter(({ uid, blockOwnerDeletion }) => blockOwnerDeletion && !before.some((old) => old.uid === uid && old.blockOwnerDeletion))
}
