/**
 * Publishes the authority of the API server's certificate as a ClusterTrustBundle (L3), and deletes older bundles of its signer.
 * Upstream: pkg/controller/certificates/clustertrustbundlepublisher, cmd/kube-controller-manager/app/certificates.go (v1.36).
 */
import { createHash } from 'node:crypto'
import { isStatus } from '#api/machinery/status'
import type { Component } from '#base/component'
import { clusterTrustBundles } from '#client/optional'
import type { ControllerContext, ControllerDescriptor } from '../framework/controller.ts'
import { createReconciler } from '../framework/reconciler.ts'
import type { RootCaPublisherOptions } from '../rootCaCertificatePublisher.ts'
import { measuredSync } from '../shared/publisherMetrics.ts'

export const trustBundlePublisher: ControllerDescriptor<RootCaPublisherOptions> = {
  name: 'kube-apiserver-serving-clustertrustbundle-publisher-controller',
  aliases: [],
  serviceAccount: 'kube-apiserver-serving-clustertrustbundle-publisher',
  requiredFeatureGate: 'ClusterTrustBundle',
  create: createPublisher,
}

const signerName = 'kubernetes.io/kube-apiserver-serving'

function createPublisher(context: ControllerContext, { rootCa }: RootCaPublisherOptions): Component {
  const { name } = trustBundlePublisher
  // Without an authority there is nothing to publish.
  if (rootCa === undefined) return { name, run: async () => {} }
  const informer = context.informers.of(clusterTrustBundles, { fieldSelector: `spec.signerName=${signerName}` })
  const client = context.client.of(clusterTrustBundles)
  const digest = createHash('sha256').update(rootCa).digest('hex').slice(0, 24)
  const bundleName = `${signerName.replaceAll('/', ':')}:${digest}`
  const reconcile = measuredSync(context, 'clustertrustbundle_publisher', 'Syncs of the cluster trust bundle.', publish)
  const reconciler = createReconciler(context, { name, queueName: 'ca_cert_publisher_cluster_trust_bundles', workers: 1, reconcile })
  const enqueue = () => reconciler.queue.add('')
  reconciler.watch(informer, { onAdd: enqueue, onUpdate: enqueue, onDelete: enqueue })
  enqueue()
  return reconciler

  async function publish(_key: string, signal: AbortSignal): Promise<void> {
    const found = informer.store.get(bundleName)
    const spec = { signerName, trustBundle: rootCa ?? '' }
    if (!found) await client.create({ metadata: { name: bundleName }, spec }, { signal })
    else if (found.spec.trustBundle !== rootCa) await client.update({ ...found, spec }, { signal })
    for (const { metadata } of informer.store.list()) {
      if (metadata.name === bundleName) continue
      await client.delete({ name: metadata.name ?? '' }, { signal }).catch((error: unknown) => {
        if (!isStatus(error, 'NotFound')) throw error
      })
    }
  }
}
