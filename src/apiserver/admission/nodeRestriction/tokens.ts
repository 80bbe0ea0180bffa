/**
 * Limits the tokens that a node may request (L3): bound to a pod of the node, for an audience that the pod names, or that an authorizer grants.
 * Upstream: admitServiceAccount, validateNodeServiceAccountAudience and podReferencesAudience of plugin/pkg/admission/noderestriction (v1.36).
 */
import type { TokenRequest } from '#api/gen/types/authentication.v1'
import type { PersistentVolume, PersistentVolumeClaim, Pod, Volume } from '#api/gen/types/core.v1'
import type { CSIDriver } from '#api/gen/types/storage.v1'
import type { Frozen, KubeObject } from '#api/machinery/meta'
import type { Authorizer } from '../../authz/authorizer.ts'
import { authorize } from '../../authz/union.ts'
import type { ObjectReader } from '../../core/objectReader.ts'
import type { AdmissionAttributes } from '../admission.ts'
import { refuse } from '../attributes.ts'
import { existingPod } from './pods.ts'

export async function checkToken(attributes: AdmissionAttributes, node: string, reader: ObjectReader, authorizers: readonly Authorizer[]): Promise<void> {
  if (attributes.operation !== 'CREATE' || attributes.subresource !== 'token') return
  const { boundObjectRef: bound, audiences = [] } = (attributes.object as KubeObject & TokenRequest).spec
  if (bound?.kind !== 'Pod' || bound.apiVersion !== 'v1' || !bound.name) throw refuse(attributes, 'node requested token not bound to a pod')
  if (!bound.uid) throw refuse(attributes, 'node requested token with a pod binding without a uid')
  const pod = existingPod(reader, attributes.namespace, bound.name)
  if (pod.metadata.uid !== bound.uid) {
    const why = 'does not match the UID in record. The object might have been deleted and then recreated'
    throw refuse(attributes, `the UID in the bound object reference (${bound.uid}) ${why}`)
  }
  if (pod.spec?.nodeName !== node) throw refuse(attributes, 'node requested token bound to a pod scheduled on a different node')
  if (audiences.length > 1) throw refuse(attributes, 'node may only request 0 or 1 audiences')
  const audience = audiences[0] ?? ''
  if (podNames(pod, audience, reader) || (await mayRequest(attributes, audience, authorizers))) return
  const who = `${attributes.user.name} is not authorized to request tokens for this audience`
  throw refuse(attributes, `audience ${JSON.stringify(audience)} not found in pod spec volume, ${who}`)
}

async function mayRequest({ user, namespace, name }: AdmissionAttributes, audience: string, authorizers: readonly Authorizer[]): Promise<boolean> {
  const asked = { user, verb: 'request-serviceaccounts-token-audience', isResourceRequest: true, path: '' }
  const about = { namespace, apiGroup: '', apiVersion: 'v1', resource: audience, subresource: '', name }
  return (await authorize(authorizers, { ...asked, ...about })).decision === 'allow'
}

/** Whether the pod has the audience in a projected token, or in the CSIDriver of a volume. */
function podNames(pod: Frozen<Pod>, audience: string, reader: ObjectReader): boolean {
  return (pod.spec?.volumes ?? []).some((volume) => {
    const projects = volume.projected?.sources?.some(({ serviceAccountToken }) => serviceAccountToken && (serviceAccountToken.audience ?? '') === audience)
    if (projects) return true
    const name = driverOf(pod, volume, reader)
    const driver = name === undefined ? undefined : reader.get<CSIDriver>({ group: 'storage.k8s.io', resource: 'csidrivers' }, '', name)
    return driver?.spec.tokenRequests?.some((request) => request.audience === audience) ?? false
  })
}

function driverOf(pod: Frozen<Pod>, volume: Frozen<Volume>, reader: ObjectReader): string | undefined {
  if (volume.csi) return volume.csi.driver
  const claimName = volume.ephemeral ? `${pod.metadata.name}-${volume.name}` : volume.persistentVolumeClaim?.claimName
  if (claimName === undefined) return undefined
  const claim = reader.get<PersistentVolumeClaim>({ group: '', resource: 'persistentvolumeclaims' }, pod.metadata.namespace ?? '', claimName)
  const volumeName = claim?.spec?.volumeName
  return volumeName ? reader.get<PersistentVolume>({ group: '', resource: 'persistentvolumes' }, '', volumeName)?.spec?.csi?.driver : undefined
}
