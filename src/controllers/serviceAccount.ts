/**
 * Gives each active namespace its `default` ServiceAccount (L3). Upstream: pkg/controller/serviceaccount/serviceaccounts_controller.go (v1.36).
 */
import { isStatus } from '#api/machinery/status'
import { namespaces, serviceAccounts } from '#client/builtIn'
import type { ControllerContext, ControllerDescriptor } from './framework/controller.ts'
import { createReconciler, enqueueSelf } from './framework/reconciler.ts'
import { isNamespaceTerminating } from './shared/podControl.ts'

export const serviceAccount: ControllerDescriptor = {
  name: 'serviceaccount-controller',
  aliases: ['serviceaccount'],
  serviceAccount: 'service-account-controller',
  create: createServiceAccountController,
}

const name = 'default'

function createServiceAccountController(context: ControllerContext) {
  const namespaceInformer = context.informers.of(namespaces)
  const informer = context.informers.of(serviceAccounts)
  const reconciler = createReconciler(context, {
    name: serviceAccount.name,
    queueName: 'serviceaccount',
    workers: 1,
    async reconcile(namespace, signal) {
      if (namespaceInformer.store.get(namespace)?.status?.phase !== 'Active' || informer.lister.get({ namespace, name })) return undefined
      try {
        await context.client.of(serviceAccounts).create({ metadata: { namespace, name } }, { signal })
      } catch (error) {
        if (!isStatus(error, 'AlreadyExists') && !isNamespaceTerminating(error)) throw error
      }
      return undefined
    },
  })
  reconciler.watch(namespaceInformer, enqueueSelf(reconciler.queue))
  reconciler.watch(informer, {
    onDelete: ({ metadata }) => {
      if (metadata.name === name) reconciler.queue.add(metadata.namespace ?? '')
    },
  })
  return reconciler
}
