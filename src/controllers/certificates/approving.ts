/**
 * Approves kubelets' requests for client certificates, when the requester is authorized (L3): a bootstrapping machine for its first
 * certificate, a node for its own next one. Upstream: pkg/controller/certificates/approver (v1.36).
 */
import type { SubjectAccessReview } from '#api/gen/types/authorization.v1'
import type { CertificateSigningRequest } from '#api/gen/types/certificates.v1'
import { parseCertificateRequest } from '#api/kinds/certificates/pkcs10'
import type { Frozen } from '#api/machinery/meta'
import { certificateSigningRequests, subjectAccessReviews } from '#client/builtIn'
import type { ControllerContext, ControllerDescriptor } from '../framework/controller.ts'
import { createReconciler, enqueueSelf } from '../framework/reconciler.ts'
import { isDecided, kubeletClient, requestFault } from './signerRules.ts'

export const certificateApproving: ControllerDescriptor = {
  name: 'certificatesigningrequest-approving-controller',
  aliases: ['csrapproving'],
  serviceAccount: 'certificate-controller',
  create: createApprovingController,
}

const approvals = [
  {
    subresource: 'selfnodeclient',
    forItself: true,
    message: 'Auto approving self kubelet client certificate after SubjectAccessReview.',
  },
  { subresource: 'nodeclient', forItself: false, message: 'Auto approving kubelet client certificate after SubjectAccessReview.' },
] as const

function createApprovingController(context: ControllerContext) {
  const client = context.client.of(certificateSigningRequests)
  const informer = context.informers.of(certificateSigningRequests)
  const reconciler = createReconciler(context, { name: certificateApproving.name, queueName: 'certificate', workers: 5, reconcile })
  reconciler.watch(informer, enqueueSelf(reconciler.queue))
  return reconciler

  async function reconcile(name: string, signal: AbortSignal): Promise<undefined> {
    const request = informer.store.get(name)
    if (!request || request.status?.certificate || isDecided(request, 'Approved') || isDecided(request, 'Denied')) return
    if (request.spec.signerName !== kubeletClient) return
    const content = parseCertificateRequest(request.spec.request)
    if (typeof content === 'string') throw new Error(`unable to parse csr "${name}": ${content}`)
    if (requestFault(kubeletClient, content, request.spec.usages ?? []) !== undefined) return
    const fitting = approvals.filter(({ forItself }) => !forItself || request.spec.username === content.commonName)
    for (const { subresource, message } of fitting) {
      if (!(await isAllowed(request, subresource, signal))) continue
      const condition = { type: 'Approved', status: 'True', reason: 'AutoApproved', message }
      const approved = { ...request, status: { ...request.status, conditions: [...(request.status?.conditions ?? []), condition] } }
      await client.updateSubresource({ name }, 'approval', approved, { signal })
      return
    }
    // Rights may be given later, without the request changing: it is tried again.
    throw new Error(`recognized csr "${name}" as [${fitting.map((one) => one.subresource).join(' ')}] but subject access review was not approved`)
  }

  async function isAllowed({ spec }: Frozen<CertificateSigningRequest>, subresource: string, signal: AbortSignal): Promise<boolean> {
    const { username = '', uid, groups, extra } = spec
    const review = await context.client.of(subjectAccessReviews).create(
      {
        metadata: {},
        spec: {
          user: username,
          ...(uid ? { uid } : {}),
          ...(groups ? { groups: [...groups] } : {}),
          ...(extra ? { extra: { ...extra } as Record<string, string[]> } : {}),
          resourceAttributes: { group: 'certificates.k8s.io', resource: 'certificatesigningrequests', verb: 'create', subresource },
        },
      } satisfies Omit<SubjectAccessReview, 'apiVersion' | 'kind' | 'status'>,
      { signal },
    )
    return review.status?.allowed === true
  }
}
