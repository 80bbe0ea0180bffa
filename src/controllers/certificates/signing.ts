/**
 * Signs approved certificate requests of the built-in signers with the cluster's authorities (L3).
 * Upstream: pkg/controller/certificates/signer, cmd/kube-controller-manager/app/certificates.go (v1.36).
 */
import type { CertificateSigningRequest } from '#api/gen/types/certificates.v1'
import { parseCertificateRequest } from '#api/kinds/certificates/pkcs10'
import type { Frozen } from '#api/machinery/meta'
import { formatTime } from '#base/time'
import { certificateSigningRequests } from '#client/builtIn'
import type { ControllerContext, ControllerDescriptor } from '../framework/controller.ts'
import { createReconciler, enqueueSelf } from '../framework/reconciler.ts'
import { certificateDurationMs, hasFailed, isBuiltInSigner, isDecided, requestFault } from './signerRules.ts'
import { signRequest } from './x509.ts'

export interface ClusterSigning {
  /** Longest life of a certificate. Default a year. */
  readonly durationMs?: number | undefined
  /** PEM of certificate and key of a signer; undefined: it does not sign. Called for each request, because authorities are renewed. */
  authorityOf(signer: string): { readonly cert: string; readonly key: string } | undefined
}

export interface SigningOptions {
  /** Signs approved requests of the built-in signers; absent: the controller signs nothing. */
  readonly clusterSigning?: ClusterSigning | undefined
}

export const certificateSigning: ControllerDescriptor<SigningOptions> = {
  name: 'certificatesigningrequest-signing-controller',
  aliases: ['csrsigning'],
  serviceAccount: 'certificate-controller',
  create: createSigningController,
}

const defaultDurationMs = 365 * 24 * 3_600_000

function createSigningController(context: ControllerContext, { clusterSigning }: SigningOptions) {
  const { clock } = context
  const client = context.client.of(certificateSigningRequests)
  const informer = context.informers.of(certificateSigningRequests)
  const reconciler = createReconciler(context, { name: certificateSigning.name, queueName: 'certificate', workers: 5, reconcile })
  reconciler.watch(informer, enqueueSelf(reconciler.queue))
  return reconciler

  async function reconcile(name: string, signal: AbortSignal): Promise<undefined> {
    const request = informer.store.get(name)
    if (!request || request.status?.certificate || !isDecided(request, 'Approved') || isDecided(request, 'Denied') || hasFailed(request)) return
    const { signerName, usages = [], expirationSeconds } = request.spec
    const authority = isBuiltInSigner(signerName) ? clusterSigning?.authorityOf(signerName) : undefined
    if (!isBuiltInSigner(signerName) || !authority) return
    const content = parseCertificateRequest(request.spec.request)
    if (typeof content === 'string') throw new Error(`unable to parse csr "${name}": ${content}`)
    const fault = requestFault(signerName, content, usages)
    if (fault !== undefined) return fail(request, fault, signal)
    const longestMs = clusterSigning?.durationMs ?? defaultDurationMs
    const signing = { usages, durationMs: certificateDurationMs(expirationSeconds, longestMs), nowMs: clock.now() }
    const certificate = await signRequest(content, authority, signing)
    await client.updateStatus({ ...request, status: { ...request.status, certificate } } as Frozen<CertificateSigningRequest>, { signal })
  }

  async function fail(request: Frozen<CertificateSigningRequest>, message: string, signal: AbortSignal): Promise<undefined> {
    const condition = { type: 'Failed', status: 'True', reason: 'SignerValidationFailure', message, lastUpdateTime: formatTime(clock.now()) }
    const status = { ...request.status, conditions: [...(request.status?.conditions ?? []), condition] }
    await client.updateStatus({ ...request, status } as Frozen<CertificateSigningRequest>, { signal })
  }
}
