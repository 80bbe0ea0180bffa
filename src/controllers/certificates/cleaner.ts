/**
 * Deletes certificate requests that have ended or expired (L3), so that they do not accumulate. Upstream: pkg/controller/certificates/cleaner (v1.36).
 */
import type { CertificateSigningRequest } from '#api/gen/types/certificates.v1'
import type { Frozen } from '#api/machinery/meta'
import { isStatus } from '#api/machinery/status'
import { parseTime } from '#base/time'
import { certificateSigningRequests } from '#client/builtIn'
import type { ControllerContext, ControllerDescriptor } from '../framework/controller.ts'
import { createReconciler, everyPeriod } from '../framework/reconciler.ts'
import { isDecided } from './signerRules.ts'
import { expiryOf } from './x509.ts'

export const certificateCleaner: ControllerDescriptor = {
  name: 'certificatesigningrequest-cleaner-controller',
  aliases: ['csrcleaner'],
  serviceAccount: 'certificate-controller',
  create: createCleaner,
}

const hourMs = 3_600_000
const periodMs = hourMs
const decidedMs = hourMs
const pendingMs = 24 * hourMs

function createCleaner(context: ControllerContext) {
  const { clock, log } = context
  const client = context.client.of(certificateSigningRequests)
  const informer = context.informers.of(certificateSigningRequests)
  const reconciler = createReconciler(context, { name: certificateCleaner.name, workers: 0, reconcile: async () => undefined })
  reconciler.needs(informer)
  reconciler.also((signal) => everyPeriod(context, certificateCleaner.name, periodMs, () => clean(signal), signal))
  return reconciler

  async function clean(signal: AbortSignal): Promise<void> {
    for (const request of informer.store.list()) {
      try {
        const { name = '', uid } = request.metadata
        if (isOutdated(request, clock.now()) || (await isExpired(request, clock.now()))) await client.delete({ name }, { preconditions: { uid }, signal })
      } catch (error) {
        if (!isStatus(error, 'NotFound') && !isStatus(error, 'Conflict')) {
          log.error(error, 'Error while attempting to clean CSR', { name: request.metadata.name })
        }
      }
    }
  }
}

/** Whether it was decided on, or has waited, for too long. */
export function isOutdated({ metadata, status }: Frozen<CertificateSigningRequest>, nowMs: number): boolean {
  const conditions = status?.conditions ?? []
  const isOlder = (time: string | undefined, ageMs: number) => (parseTime(time ?? '') ?? nowMs) + ageMs < nowMs
  if (conditions.length === 0) return isOlder(metadata.creationTimestamp, pendingMs)
  return conditions.some(({ type, lastUpdateTime }) => {
    if (type === 'Denied' || type === 'Failed') return isOlder(lastUpdateTime, decidedMs)
    return type === 'Approved' && status?.certificate !== undefined && isOlder(lastUpdateTime, decidedMs)
  })
}

async function isExpired(request: Frozen<CertificateSigningRequest>, nowMs: number): Promise<boolean> {
  const certificate = request.status?.certificate
  return certificate !== undefined && isDecided(request, 'Approved') && nowMs > (await expiryOf(certificate))
}
