/**
 * Puts the cluster's CA into every active namespace, for pods to trust the API server (L3).
 * Upstream: pkg/controller/certificates/rootcacertpublisher (v1.36).
 */
import { isStatus } from '#api/machinery/status'
import type { Component } from '#base/component'
import { configMaps, namespaces } from '#client/builtIn'
import type { ControllerContext, ControllerDescriptor } from './framework/controller.ts'
import { createReconciler, enqueueSelf } from './framework/reconciler.ts'
import { isNamespaceTerminating } from './shared/podControl.ts'
import { measuredSync } from './shared/publisherMetrics.ts'

export interface RootCaPublisherOptions {
  /** PEM of the cluster's CA, for the kube-root-ca.crt ConfigMaps. */
  readonly rootCa?: string | undefined
}

export const rootCaCertificatePublisher: ControllerDescriptor<RootCaPublisherOptions> = {
  name: 'root-ca-certificate-publisher-controller',
  aliases: ['root-ca-cert-publisher'],
  serviceAccount: 'root-ca-cert-publisher',
  create: createPublisher,
}

const name = 'kube-root-ca.crt'
const annotations = {
  'kubernetes.io/description':
    'Contains a CA bundle that can be used to verify the kube-apiserver when using internal endpoints such as the internal service IP or kubernetes.default.svc. No other usage is guaranteed across distributions of Kubernetes clusters.',
}

function createPublisher(context: ControllerContext, { rootCa }: RootCaPublisherOptions): Component {
  // Without a CA there is nothing to publish.
  if (rootCa === undefined) return { name: rootCaCertificatePublisher.name, run: async () => {} }
  const namespaceInformer = context.informers.of(namespaces)
  const informer = context.informers.of(configMaps)
  const data = { 'ca.crt': rootCa }
  const reconciler = createReconciler(context, {
    name: rootCaCertificatePublisher.name,
    queueName: 'root_ca_cert_publisher',
    workers: 1,
    reconcile: measuredSync(context, 'root_ca_cert_publisher', 'Syncs of a namespace with the certificate of its authority.', publish),
  })
  reconciler.watch(namespaceInformer, enqueueSelf(reconciler.queue))
  const ours = (object: { readonly metadata: { readonly name?: string | undefined; readonly namespace?: string | undefined } }) => {
    if (object.metadata.name === name) reconciler.queue.add(object.metadata.namespace ?? '')
  }
  reconciler.watch(informer, { onUpdate: (_, object) => ours(object), onDelete: ours })
  return reconciler

  async function publish(namespace: string, signal: AbortSignal): Promise<void> {
    if (namespaceInformer.store.get(namespace)?.status?.phase !== 'Active') return
    const client = context.client.of(configMaps)
    const there = informer.lister.get({ namespace, name })
    if (!there) {
      try {
        await client.create({ metadata: { namespace, name, annotations }, data }, { signal })
      } catch (error) {
        if (!isStatus(error, 'AlreadyExists') && !isNamespaceTerminating(error)) throw error
      }
    } else if (
      there.data?.['ca.crt'] !== data['ca.crt'] ||
      Object.keys(there.data).length !== 1 ||
      !there.metadata.annotations?.['kubernetes.io/description']
    ) {
      await client.update({ ...there, metadata: { ...there.metadata, annotations: { ...there.metadata.annotations, ...annotations } }, data }, { signal })
    }
  }
}
