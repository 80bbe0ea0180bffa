/**
 * Limits what a node's identity may do to pods and claims (L3): create and delete its mirror pods, report status, evict, and set the size of a claim.
 * Upstream: admitPod, admitPodStatus, admitPodEviction and admitPVCStatus of plugin/pkg/admission/noderestriction (v1.36).
 */
import type { Node, PersistentVolumeClaim, Pod } from '#api/gen/types/core.v1'
import { referencedResource } from '#api/helpers/objectReferences'
import { isMirrorPod } from '#api/helpers/pods'
import type { Frozen } from '#api/machinery/meta'
import { notFound } from '#api/machinery/status'
import type { ObjectReader } from '../../core/objectReader.ts'
import { deepEqual } from '../../core/sameObject.ts'
import type { AdmissionAttributes } from '../admission.ts'
import { objectOf, refuse } from '../attributes.ts'

const mirrorAnnotation = 'kubernetes.io/config.mirror'
const pods = { group: '', resource: 'pods' }
const nodes = { group: '', resource: 'nodes' }
const quoted = JSON.stringify

/** @throws Status NotFound */
export function existingPod(reader: ObjectReader, namespace: string, name: string): Frozen<Pod> {
  const pod = reader.get<Pod>(pods, namespace, name)
  if (!pod) throw notFound(pods, name)
  return pod
}

/** @throws Status Forbidden for a pod of another node, NotFound for a deleted pod */
export function checkPod(attributes: AdmissionAttributes, node: string, reader: ObjectReader): void {
  const { subresource, operation, namespace, name } = attributes
  const mustBeOwn = (what: string) => {
    const podName = name || (attributes.object?.metadata?.name ?? '')
    if (podName === '') throw refuse(attributes, 'could not determine pod from request data')
    if (existingPod(reader, namespace, podName).spec?.nodeName !== node) throw refuse(attributes, `${what} pods with spec.nodeName set to itself`)
  }
  switch (subresource) {
    case '':
      if (operation === 'CREATE') checkMirrorPod(attributes, node, reader)
      else if (operation === 'DELETE') mustBeOwn(`node ${quoted(node)} can only delete`)
      else throw refuse(attributes, `unexpected operation ${quoted(operation)}, node ${quoted(node)} can only create and delete mirror pods`)
      break
    case 'status':
      if (operation !== 'UPDATE') throw refuse(attributes, `unexpected operation ${quoted(operation)}`)
      checkStatus(attributes, node)
      break
    case 'eviction':
      if (operation !== 'CREATE') throw refuse(attributes, `unexpected operation ${operation}`)
      mustBeOwn(`node ${node} can only evict`)
      break
    default:
      throw refuse(attributes, `unexpected pod subresource ${quoted(subresource)}, only 'status' and 'eviction' are allowed`)
  }
}

function checkMirrorPod(attributes: AdmissionAttributes, node: string, reader: ObjectReader): void {
  const pod = objectOf<Pod>(attributes)
  if (!isMirrorPod(pod)) throw refuse(attributes, `pod does not have ${quoted(mirrorAnnotation)} annotation, node ${quoted(node)} can only create mirror pods`)
  if (pod.spec.nodeName !== node) throw refuse(attributes, `node ${quoted(node)} can only create pods with spec.nodeName set to itself`)
  const fault = ownerFault(pod, node, reader)
  if (fault) throw refuse(attributes, fault)
  // A node may read the objects that its pods name, so a mirror pod, which the node creates, must name none.
  const resource = referencedResource(pod as Frozen<Pod>)
  if (resource) throw refuse(attributes, `node ${quoted(node)} can not create pods that reference ${resource}`)
}

function ownerFault(pod: Pod, name: string, reader: ObjectReader): string | undefined {
  const [owner, ...others] = pod.metadata.ownerReferences ?? []
  const who = `node ${quoted(name)} can only create pods with`
  if (others.length > 0) return `${who} a single owner reference set to itself`
  if (owner?.apiVersion !== 'v1' || owner.kind !== 'Node' || owner.name !== name) return `${who} an owner reference set to itself`
  if (owner.controller !== true) return `${who} a controller owner reference set to itself`
  if (owner.blockOwnerDeletion === true) return `node ${quoted(name)} must not set blockOwnerDeletion on an owner reference`
  const node = reader.get<Node>(nodes, '', name)
  if (!node) throw notFound(nodes, name)
  return owner.uid === node.metadata.uid ? undefined : `node ${name} UID mismatch: expected ${owner.uid} got ${node.metadata.uid}`
}

function checkStatus(attributes: AdmissionAttributes, node: string): void {
  const old = attributes.oldObject as Frozen<Pod> | undefined
  const pod = objectOf<Pod>(attributes)
  const who = `node ${quoted(node)}`
  if (old?.spec?.nodeName !== node) throw refuse(attributes, `${who} can only update pod status for pods with spec.nodeName set to itself`)
  if (!deepEqual(old.metadata.labels ?? {}, pod.metadata.labels ?? {})) throw refuse(attributes, `${who} cannot update labels through pod status`)
  if (!deepEqual(old.status?.resourceClaimStatuses ?? [], pod.status?.resourceClaimStatuses ?? [])) {
    throw refuse(attributes, `${who} cannot update resource claim statues`)
  }
  if (!deepEqual(old.status?.extendedResourceClaimStatus, pod.status?.extendedResourceClaimStatus)) {
    throw refuse(attributes, `${who} cannot update extended resource claim status`)
  }
}

/** Allows only changes of a claim's size in its status. */
export function checkClaim(attributes: AdmissionAttributes, node: string): void {
  if (attributes.subresource !== 'status') throw refuse(attributes, 'may only update PVC status')
  if (attributes.operation !== 'UPDATE') throw refuse(attributes, `unexpected operation ${quoted(attributes.operation)}`)
  const old = comparable(attributes.oldObject as Frozen<PersistentVolumeClaim>)
  if (!deepEqual(old, comparable(attributes.object as unknown as Frozen<PersistentVolumeClaim>))) {
    throw refuse(attributes, `node ${quoted(node)} is not allowed to update fields other than status.quantity and status.conditions`)
  }
}

function comparable({ metadata, spec, status }: Frozen<PersistentVolumeClaim>): object {
  const { resourceVersion: _version, managedFields: _managed, ...identity } = metadata
  const { capacity: _capacity, conditions: _conditions, allocatedResourceStatuses: _statuses, allocatedResources: _resources, ...state } = status ?? {}
  return { identity, spec, state }
}
