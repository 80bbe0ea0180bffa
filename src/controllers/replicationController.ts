/**
 * Keeps as many pods as a ReplicationController asks for (L3): the ReplicaSet's predecessor, whose selector is a plain map of labels. The work is
 * replicaSet/replicaSet.ts'. Upstream: pkg/controller/replication (v1.36).
 */
import type { ReplicaSet } from '#api/gen/types/apps.v1'
import type { ReplicationController } from '#api/gen/types/core.v1'
import type { Frozen } from '#api/machinery/meta'
import { replicationControllers } from '#client/builtIn'
import type { ControllerContext, ControllerDescriptor } from './framework/controller.ts'
import { createReplicaController } from './replicaSet/replicaSet.ts'

export const replicationController: ControllerDescriptor = {
  name: 'replicationcontroller-controller',
  aliases: ['replicationcontroller'],
  serviceAccount: 'replication-controller',
  create: createReplicationManager,
}

function createReplicationManager(context: ControllerContext) {
  return createReplicaController(context, {
    name: replicationController.name,
    queueName: 'replicationmanager',
    component: 'replication-controller',
    resource: replicationControllers,
    asReplicaSet,
    statusOf: ({ terminatingReplicas: _, ...status }) => status,
    siblings: (object) => [object],
  })
}

/** An empty selector chooses nothing here; defaults see to it that there is one. */
function asReplicaSet(object: Frozen<ReplicationController>): Frozen<ReplicaSet> {
  const { selector, ...spec } = object.spec ?? {}
  return { ...object, spec: { ...spec, selector: { matchLabels: selector ?? {} } }, status: object.status as Frozen<ReplicaSet>['status'] }
}
