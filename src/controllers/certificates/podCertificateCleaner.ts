/** Deletes PodCertificateRequests that are older than any of them needs to be (L3). Upstream: pkg/controller/certificates/cleaner/pcrcleaner.go (v1.36). */
import { isStatus } from '#api/machinery/status'
import { parseTime } from '#base/time'
import { podCertificateRequests } from '#client/optional'
import type { ControllerContext, ControllerDescriptor } from '../framework/controller.ts'
import { createReconciler, everyPeriod } from '../framework/reconciler.ts'

export const podCertificateCleaner: ControllerDescriptor = {
  name: 'podcertificaterequest-cleaner-controller',
  aliases: [],
  serviceAccount: 'podcertificaterequestcleaner',
  requiredFeatureGate: 'PodCertificateRequest',
  create: createCleaner,
}

const maxAgeMs = 15 * 60_000
const periodMs = 5 * 60_000

function createCleaner(context: ControllerContext) {
  const { clock, log } = context
  const client = context.client.of(podCertificateRequests)
  const informer = context.informers.of(podCertificateRequests)
  const reconciler = createReconciler(context, { name: podCertificateCleaner.name, workers: 0, reconcile: async () => undefined })
  reconciler.needs(informer)
  reconciler.also((signal) => everyPeriod(context, podCertificateCleaner.name, periodMs, () => clean(signal), signal))
  return reconciler

  async function clean(signal: AbortSignal): Promise<void> {
    for (const { metadata } of informer.store.list()) {
      const { namespace, name = '', uid, creationTimestamp = '' } = metadata
      if (clock.now() < (parseTime(creationTimestamp) ?? 0) + maxAgeMs) continue
      try {
        await client.delete({ namespace, name }, { preconditions: { uid }, signal })
      } catch (error) {
        if (!isStatus(error, 'NotFound')) log.error(error, 'Error while attempting to clean PodCertificateRequest', { pcr: `${namespace}/${name}` })
      }
    }
  }
}
