/**
 * CertificateApproval, CertificateSigning, ClusterTrustBundleAttest and CertificateSubjectRestriction (L3): a user that approves, signs or attests for a
 * signer needs the right to do so for that signer, and the API server's client signer issues no certificate of an administrator.
 * Upstream: plugin/pkg/admission/certificates, pkg/certauthorization.
 */
import type { CertificateSigningRequest } from '#api/gen/types/certificates.v1'
import type { ClusterTrustBundle } from '#api/gen/types/certificates.v1beta1'
import { parseCertificateRequest } from '#api/kinds/certificates/pkcs10'
import { semanticEqual } from '#api/machinery/equality'
import type { Frozen } from '#api/machinery/meta'
import type { Authorizer } from '../../authz/authorizer.ts'
import { mayForSigner } from '../../authz/signers.ts'
import type { AdmissionPlugin } from '../admission.ts'
import { isResource, isSubresource, objectOf, refuse } from '../attributes.ts'

const group = 'certificates.k8s.io'
const requests = 'certificatesigningrequests'
const clientSigner = 'kubernetes.io/kube-apiserver-client'

/** Approving and denying require the verb approve on the signer. */
export function certificateApproval(authorizers: readonly Authorizer[]): AdmissionPlugin {
  return {
    name: 'CertificateApproval',
    handles: (operation) => operation === 'UPDATE',
    async validate(attributes) {
      if (!isSubresource(attributes, group, requests, 'approval')) return
      const { signerName } = (attributes.oldObject as Frozen<CertificateSigningRequest>).spec
      if (!(await mayForSigner(authorizers, attributes.user, 'approve', signerName)))
        throw refuse(attributes, `user not permitted to approve requests with signerName "${signerName}"`)
    },
  }
}

/** Writing a certificate or a condition requires the verb sign on the signer. */
export function certificateSigning(authorizers: readonly Authorizer[]): AdmissionPlugin {
  return {
    name: 'CertificateSigning',
    handles: (operation) => operation === 'UPDATE',
    async validate(attributes) {
      if (!isSubresource(attributes, group, requests, 'status')) return
      const old = attributes.oldObject as Frozen<CertificateSigningRequest>
      const { status } = objectOf<CertificateSigningRequest>(attributes)
      if (old.status?.certificate === status?.certificate && semanticEqual(old.status?.conditions ?? [], status?.conditions ?? [])) return
      const { signerName } = old.spec
      if (!(await mayForSigner(authorizers, attributes.user, 'sign', signerName)))
        throw refuse(attributes, `user not permitted to sign requests with signerName "${signerName}"`)
    },
  }
}

/** A bundle with a signer requires the verb attest on it. */
export function clusterTrustBundleAttest(authorizers: readonly Authorizer[]): AdmissionPlugin {
  return {
    name: 'ClusterTrustBundleAttest',
    handles: (operation) => operation === 'CREATE' || operation === 'UPDATE',
    async validate(attributes) {
      if (attributes.resource.group !== group || attributes.resource.resource !== 'clustertrustbundles') return
      const bundle = objectOf<ClusterTrustBundle>(attributes)
      const { signerName } = bundle.spec
      if (!signerName || changesHousekeepingOnly(bundle, attributes.oldObject as Frozen<ClusterTrustBundle> | undefined)) return
      if (!(await mayForSigner(authorizers, attributes.user, 'attest', signerName)))
        throw refuse(attributes, `user not permitted to attest for signerName "${signerName}"`)
    },
  }
}

export const certificateSubjectRestriction: AdmissionPlugin = {
  name: 'CertificateSubjectRestriction',
  handles: (operation) => operation === 'CREATE',
  validate(attributes) {
    if (!isResource(attributes, group, requests)) return
    const { spec } = objectOf<CertificateSigningRequest>(attributes)
    if (spec.signerName !== clientSigner) return
    const parsed = parseCertificateRequest(spec.request)
    if (typeof parsed === 'string') throw refuse(attributes, `failed to parse CSR: ${parsed}`)
    if (parsed.organizations.includes('system:masters')) throw refuse(attributes, `use of ${clientSigner} signer with system:masters group is not allowed`)
  },
}

/** True if only finalizers and owner references change. */
function changesHousekeepingOnly(bundle: ClusterTrustBundle, old: Frozen<ClusterTrustBundle> | undefined): boolean {
  if (!old) return false
  const rest = ({ metadata, spec }: Frozen<ClusterTrustBundle>) => {
    const { ownerReferences: _owners, finalizers: _finalizers, managedFields: _fields, ...kept } = metadata
    return { metadata: kept, spec }
  }
  return semanticEqual(rest(bundle as Frozen<ClusterTrustBundle>), rest(old))
}
