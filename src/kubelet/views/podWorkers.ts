/** The view `podworkers` (L3): what the kubelet does about each pod of its node. It answers why a pod does not start or end when its status does not. */
import { schemaOfDefinition } from '#api/schema/builtIn'
import { bareMap } from '#base/bareMap'
import type { PodWorkerState } from '../core/kubeletView.ts'
import { field, type NodeView, struct, text } from './nodeView.ts'

const worker = struct('PodWorker', [
  field('namespace', 1, text),
  field('name', 2, text),
  field('uid', 3, text),
  field('stage', 4, { ...text, enum: ['syncing', 'terminating', 'terminated'] }),
  field('isWorking', 5, { type: 'boolean' }),
  field('isDeleted', 6, { type: 'boolean' }),
  field('graceSeconds', 7, { type: 'integer', format: 'int64' }, false),
])

const objectMeta = schemaOfDefinition('io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta')

interface PodWorkers {
  readonly metadata: { readonly name?: string | undefined }
  readonly workers?: readonly PodWorkerState[] | undefined
  readonly error?: string | undefined
}

const count = (stage: PodWorkerState['stage']) => ({
  name: `${stage.charAt(0).toUpperCase()}${stage.slice(1)}`,
  type: 'integer',
  value: ({ workers = [] }: PodWorkers) => workers.filter((one) => one.stage === stage).length,
})

export const podWorkersView: NodeView = {
  resource: 'podworkers',
  kind: 'PodWorkers',
  schema: struct('PodWorkers', [
    { name: 'apiVersion', schema: text, required: false },
    { name: 'kind', schema: text, required: false },
    field('metadata', 1, objectMeta, false),
    field('workers', 2, { type: 'array', element: worker }, false),
    field('error', 3, text, false),
  ]),
  columns: [
    { name: 'Name', type: 'string', format: 'name', value: ({ metadata }: PodWorkers) => metadata.name },
    count('syncing'),
    count('terminating'),
    count('terminated'),
    { name: 'Working', type: 'integer', value: ({ workers = [] }: PodWorkers) => workers.filter(({ isWorking }) => isWorking).length },
    { name: 'Error', type: 'string', value: ({ error = '' }: PodWorkers) => error },
  ],
  texts: bareMap({
    '': 'PodWorkers is what the kubelet of a node does about its pods. It has the name of the node.',
    workers: 'One for each pod that the kubelet knows.',
    error: 'Why the kubelet did not answer.',
  }),
  parts: [
    {
      schema: worker,
      texts: bareMap({
        '': 'PodWorker is what the kubelet does about one pod.',
        stage: 'syncing: its containers should run; terminating: they are being stopped; terminated: none runs any more.',
        isWorking: 'A step is under way at this moment.',
        isDeleted: 'The pod is deleted from the API.',
        graceSeconds: 'The grace period with which its containers are stopped.',
      }),
    },
  ],
  compute: (view) => ({ workers: view.podWorkers() }),
}
