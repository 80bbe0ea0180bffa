/** Why a CertificateSigningRequest has no certificate (L2). */
import type { CertificateSigningRequest } from '#api/gen/types/certificates.v1'
import type { Frozen } from '#api/machinery/meta'
import { type Cause, conditionText, type Explanation, kubectl } from './answer.ts'

export async function explainCertificate(request: Frozen<CertificateSigningRequest>): Promise<Explanation> {
  const { conditions = [], certificate } = request.status ?? {}
  if (certificate) return { state: 'its certificate is issued', causes: [] }
  const state = conditions.length === 0 ? 'it is Pending' : `it is ${conditions.map(({ type }) => type).join(', ')}`
  return { state, causes: [causeOf(request)] }
}

function causeOf({ spec: { signerName, username = '' }, status, metadata: { name = '' } }: Frozen<CertificateSigningRequest>): Cause {
  const { conditions = [] } = status ?? {}
  const next = kubectl(undefined, 'describe', 'csr', name)
  const refused = conditions.find(({ type }) => type === 'Denied' || type === 'Failed')
  if (refused) {
    const text = refused.type === 'Denied' ? 'an approver has denied it' : `the signer ${signerName} refuses it`
    return { text: `${text}: ${refused.message || refused.reason}`, evidence: conditionText({ ...refused, message: '' }), next }
  }
  if (conditions.some(({ type }) => type === 'Approved'))
    return {
      text: `it is approved, and the signer ${signerName} has not signed it: check that a controller serves this signer`,
      evidence: 'condition Approved, status.certificate is empty',
      next,
    }
  return {
    text: `no approver has approved it; ${username} asks ${signerName} for it`,
    evidence: 'no condition Approved or Denied',
    next: kubectl(undefined, 'certificate', 'approve', name),
  }
}
