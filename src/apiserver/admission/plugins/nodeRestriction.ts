/**
 * Limits a node's identity to changes of its own objects (L3): its Node, Lease, CSINode and ResourceSlices, mirror pods and the status of its pods, the
 * size of their claims, tokens for them, and requests for certificates in its own name.
 * Upstream: plugin/pkg/admission/noderestriction (v1.36).
 */
import type { CertificateSigningRequest } from '#api/gen/types/certificates.v1'
import type { ResourceSlice } from '#api/gen/types/resource.v1'
import { parseCertificateRequest } from '#api/kinds/certificates/pkcs10'
import type { Frozen } from '#api/machinery/meta'
import type { Authorizer } from '../../authz/authorizer.ts'
import { nodeOf } from '../../authz/node.ts'
import type { ObjectReader } from '../../core/objectReader.ts'
import type { AdmissionAttributes, AdmissionPlugin } from '../admission.ts'
import { objectOf, refuse } from '../attributes.ts'
import { checkNode } from '../nodeRestriction/nodes.ts'
import { checkPodCertificateRequest } from '../nodeRestriction/podCertificates.ts'
import { checkClaim, checkPod } from '../nodeRestriction/pods.ts'
import { checkToken } from '../nodeRestriction/tokens.ts'

/** @param authorizers decide which audiences a node may request tokens for, in addition to those that its pods name */
export function nodeRestriction(reader: ObjectReader, authorizers: readonly Authorizer[]): AdmissionPlugin {
  return {
    name: 'NodeRestriction',
    handles: (operation) => operation !== 'CONNECT',
    admit: (attributes) => {
      const node = nodeOf(attributes.user)
      if (node === undefined) return undefined
      if (node === '') throw refuse(attributes, `could not determine node from user ${JSON.stringify(attributes.user.name)}`)
      const { group, resource } = attributes.resource
      switch (group === '' ? resource : `${resource}.${group}`) {
        case 'pods':
          return checkPod(attributes, node, reader)
        case 'nodes':
          return checkNode(attributes, node)
        case 'persistentvolumeclaims':
          return checkClaim(attributes, node)
        case 'serviceaccounts':
          return checkToken(attributes, node, reader, authorizers)
        case 'leases.coordination.k8s.io':
          return checkLease(attributes, node)
        case 'csinodes.storage.k8s.io':
          return checkOwnName(attributes, node, 'can only access CSINode with the same name as the requesting node')
        case 'resourceslices.resource.k8s.io':
          return checkSlice(attributes, node)
        case 'certificatesigningrequests.certificates.k8s.io':
          return checkCertificateRequest(attributes, node)
        case 'podcertificaterequests.certificates.k8s.io':
          return checkPodCertificateRequest(attributes, node, reader)
        default:
          return undefined
      }
    },
  }
}

function checkLease(attributes: AdmissionAttributes, node: string): void {
  if (attributes.namespace !== 'kube-node-lease') throw refuse(attributes, 'can only access leases in the "kube-node-lease" system namespace')
  checkOwnName(attributes, node, 'can only access node lease with the same name as the requesting node')
}

function checkOwnName(attributes: AdmissionAttributes, node: string, why: string): void {
  const name = attributes.operation === 'CREATE' ? attributes.object?.metadata.name : attributes.name
  if (name !== node) throw refuse(attributes, why)
}

/** Checks what the authorizer cannot see: the node of a new slice, and each slice of a deletecollection. */
function checkSlice(attributes: AdmissionAttributes, node: string): void {
  const { operation, oldObject } = attributes
  if (operation === 'CREATE' && objectOf<ResourceSlice>(attributes).spec.nodeName !== node) {
    throw refuse(attributes, 'can only create ResourceSlice with the same NodeName as the requesting node')
  }
  if (operation === 'DELETE' && (oldObject as Frozen<ResourceSlice> | undefined)?.spec.nodeName !== node) {
    throw refuse(attributes, 'can only delete ResourceSlice with the same NodeName as the requesting node')
  }
}

const kubeletSigners: ReadonlySet<string> = new Set(['kubernetes.io/kubelet-serving', 'kubernetes.io/kube-apiserver-client-kubelet'])

/** A node may request certificates from the kubelets' signers only in its own name. */
function checkCertificateRequest(attributes: AdmissionAttributes, node: string): void {
  if (attributes.operation !== 'CREATE') return
  const { signerName, request } = objectOf<CertificateSigningRequest>(attributes).spec
  if (!kubeletSigners.has(signerName)) return
  const parsed = parseCertificateRequest(request)
  if (typeof parsed === 'string') throw refuse(attributes, `unable to parse csr: ${parsed}`)
  if (parsed.commonName !== `system:node:${node}`) throw refuse(attributes, `can only create a node CSR with CN=system:node:${node}`)
}
