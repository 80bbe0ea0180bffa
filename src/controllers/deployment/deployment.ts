/**
 * Rolls Deployments out (L3): this file listens and claims; sync.ts acts; plan.ts and status.ts decide.
 * Upstream: pkg/controller/deployment/deployment_controller.go (v1.36).
 */
import type { ReplicaSet } from '#api/gen/types/apps.v1'
import { controllerOf } from '#api/helpers/owners'
import { semanticEqual } from '#api/machinery/equality'
import { selectorOf } from '#api/machinery/labelSelector'
import { type Frozen, keyOf } from '#api/machinery/meta'
import { deployments, pods, replicaSets } from '#client/builtIn'
import type { ControllerContext, ControllerDescriptor } from '../framework/controller.ts'
import { createReconciler, enqueueSelf } from '../framework/reconciler.ts'
import { claim } from '../shared/claim.ts'
import { controllerUidIndex, podControllerIndexers, replicaSetControllerIndexers } from '../shared/indexes.ts'
import { syncDeployment } from './sync.ts'

export const deployment: ControllerDescriptor = {
  name: 'deployment-controller',
  aliases: ['deployment'],
  serviceAccount: 'deployment-controller',
  create: createDeploymentController,
}

function createDeploymentController(context: ControllerContext) {
  const informer = context.informers.of(deployments)
  const setInformer = context.informers.of(replicaSets)
  const podInformer = context.informers.of(pods)
  setInformer.addIndexers(replicaSetControllerIndexers)
  podInformer.addIndexers(podControllerIndexers)
  const events = context.events('deployment-controller')
  const reconciler = createReconciler(context, {
    name: deployment.name,
    queueName: 'deployment',
    workers: 5,
    maxRetries: 15,
    async reconcile(key, signal) {
      const object = informer.store.get(key)
      if (!object) return
      const { selector } = object.spec
      if (Object.keys(selector.matchLabels ?? {}).length === 0 && (selector.matchExpressions ?? []).length === 0) {
        events.event(object, 'Warning', 'SelectingAll', 'This deployment is selecting all pods. A non-empty selector is required.')
        return
      }
      const byUid = setInformer.store.byIndex(controllerUidIndex, object.metadata.uid ?? '')
      const orphans = setInformer.store.byIndex(controllerUidIndex, `orphan:${object.metadata.namespace}`)
      const options = { context, owner: object, ownerResource: deployments, resource: replicaSets, selector: selectorOf(selector), signal }
      const sets = await claim([...byUid, ...orphans], options)
      const podsOf = (set: Frozen<ReplicaSet>) => podInformer.store.byIndex(controllerUidIndex, set.metadata.uid ?? '')
      return syncDeployment({ context, events, signal, podsOf, deployment: object, sets })
    },
  })

  const enqueueOwner = (object: Frozen<ReplicaSet>) => {
    const controller = controllerOf(object)
    if (controller?.kind !== 'Deployment') return
    const owner = informer.lister.get({ namespace: object.metadata.namespace, name: controller.name })
    if (owner?.metadata.uid === controller.uid) reconciler.queue.add(keyOf(owner))
  }
  const enqueueOwnerOrMatching = (set: Frozen<ReplicaSet>) => {
    if (controllerOf(set)) {
      enqueueOwner(set)
      return
    }
    for (const object of informer.lister.list({ namespace: set.metadata.namespace })) {
      if (selectorOf(object.spec.selector).matches(set.metadata.labels ?? {})) reconciler.queue.add(keyOf(object))
    }
  }
  reconciler.watch(informer, enqueueSelf(reconciler.queue))
  reconciler.watch(setInformer, {
    onAdd: enqueueOwnerOrMatching,
    onUpdate: (old, set) => {
      if (old.metadata.resourceVersion === set.metadata.resourceVersion) return
      const moved = controllerOf(old)?.uid !== controllerOf(set)?.uid
      if (moved) enqueueOwner(old)
      if (controllerOf(set) || moved || !semanticEqual(old.metadata.labels, set.metadata.labels)) enqueueOwnerOrMatching(set)
    },
    onDelete: enqueueOwner,
  })
  reconciler.watch(podInformer, {
    // Recreate waits for the last old pod to be gone.
    onDelete: (pod) => {
      const controller = controllerOf(pod)
      if (controller?.kind !== 'ReplicaSet') return
      const set = setInformer.lister.get({ namespace: pod.metadata.namespace, name: controller.name })
      if (set?.metadata.uid === controller.uid) enqueueOwner(set)
    },
  })
  return reconciler
}
