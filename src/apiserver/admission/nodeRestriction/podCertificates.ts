/**
 * Limits the certificates that a node may request for pods (L3): the request names the node itself, a pod that runs there and the pod's service account,
 * each with its UID. Refusals that a cache which is behind may cause are plain errors, because the node can try again.
 * Upstream: admitPodCertificateRequest of plugin/pkg/admission/noderestriction (v1.36).
 */
import type { PodCertificateRequest } from '#api/gen/types/certificates.v1beta1'
import type { Node, Pod, ServiceAccount } from '#api/gen/types/core.v1'
import { isMirrorPod } from '#api/helpers/pods'
import type { Frozen, KubeObject } from '#api/machinery/meta'
import type { ObjectReader } from '../../core/objectReader.ts'
import type { AdmissionAttributes } from '../admission.ts'
import { objectOf, plainError, refuse } from '../attributes.ts'

export function checkPodCertificateRequest(attributes: AdmissionAttributes, node: string, reader: ObjectReader): void {
  const { operation, subresource, namespace } = attributes
  if (operation !== 'CREATE') throw refuse(attributes, `unexpected operation ${operation}`)
  if (subresource !== '') throw refuse(attributes, `unexpected subresource ${subresource}`)
  const { spec } = objectOf<PodCertificateRequest>(attributes)
  const quoted = (text: string | undefined) => JSON.stringify(text ?? '')
  const podName = quoted(`${namespace}/${spec.podName ?? ''}`)
  const request = `PodCertificateRequest for pod ${podName}`
  if (spec.nodeName !== node)
    throw refuse(attributes, `PodCertificateRequest.Spec.NodeName=${quoted(spec.nodeName)}, which is not the requesting node ${quoted(node)}`)
  const { uid: nodeUid } = named<Node>(reader, ['nodes', 'node'], '', spec.nodeName, quoted(spec.nodeName)).metadata
  if (nodeUid !== spec.nodeUID) throw plainError(`${request} names node UID ${quoted(spec.nodeUID)}, inconsistent with the running node (${quoted(nodeUid)})`)
  const pod = named<Pod>(reader, ['pods', 'pod'], namespace, spec.podName, podName)
  const { uid: podUid } = pod.metadata
  if (podUid !== spec.podUID) throw plainError(`${request} contains pod UID (${quoted(spec.podUID)}) which differs from running pod ${quoted(podUid)}`)
  if (pod.spec.nodeName !== spec.nodeName)
    throw refuse(attributes, `pod ${podName} is not running on node ${quoted(spec.nodeName)} named in the PodCertificateRequest`)
  if (isMirrorPod(pod)) throw refuse(attributes, `pod ${podName} is a mirror pod`)
  const { serviceAccountName = '' } = pod.spec
  if (spec.serviceAccountName !== serviceAccountName) {
    const differs = `that differs from running pod (${quoted(serviceAccountName)})`
    throw refuse(attributes, `${request} contains serviceAccountName (${quoted(spec.serviceAccountName)}) ${differs}`)
  }
  const accountName = quoted(`${namespace}/${spec.serviceAccountName}`)
  const { uid: accountUid } = named<ServiceAccount>(reader, ['serviceaccounts', 'service account'], namespace, spec.serviceAccountName, accountName).metadata
  if (accountUid !== spec.serviceAccountUID) {
    const differs = `which differs from the running service account (${quoted(accountUid)})`
    throw plainError(`${request} names service account UID ${quoted(spec.serviceAccountUID)}, ${differs}`)
  }
}

/** @throws StatusError when the object is not there */
function named<T extends KubeObject>(
  reader: ObjectReader,
  [resource, what]: readonly [string, string],
  namespace: string,
  name: string,
  shown: string,
): Frozen<T> {
  const found = reader.get<T>({ group: '', resource }, namespace, name)
  const missing = `${what.replace(' ', '')} ${JSON.stringify(name)} not found`
  if (!found) throw plainError(`while retrieving ${what} ${shown} named in the PodCertificateRequest: ${missing}`)
  return found
}
