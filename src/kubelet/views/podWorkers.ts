/** The view `podworkers` (L3): what the kubelet does about each pod of its node. It answers why a pod does not start or end when its status does not. */
import { bareMap } from '#base/bareMap'
import type { PodWorkerState } from '../core/kubeletView.ts'
import { errorColumn, errorText, field, listOf, type NodeView, nameColumn, struct, text, viewSchema } from './nodeView.ts'

const worker = struct('PodWorker', [
  field('namespace', 1, text),
  field('name', 2, text),
  field('uid', 3, text),
  field('stage', 4, { ...text, enum: ['syncing', 'terminating', 'terminated'] }),
  field('isWorking', 5, { type: 'boolean' }),
  field('isDeleted', 6, { type: 'boolean' }),
  field('graceSeconds', 7, { type: 'integer', format: 'int64' }, false),
])

interface PodWorkers {
  readonly workers?: readonly PodWorkerState[] | undefined
}

const count = (stage: PodWorkerState['stage']) => ({
  name: `${stage.charAt(0).toUpperCase()}${stage.slice(1)}`,
  type: 'integer',
  value: ({ workers = [] }: PodWorkers) => workers.filter((one) => one.stage === stage).length,
})

export const podWorkersView: NodeView = {
  resource: 'podworkers',
  kind: 'PodWorkers',
  schema: viewSchema('PodWorkers', [field('workers', 2, listOf(worker), false)]),
  columns: [
    nameColumn,
    count('syncing'),
    count('terminating'),
    count('terminated'),
    { name: 'Working', type: 'integer', value: ({ workers = [] }: PodWorkers) => workers.filter(({ isWorking }) => isWorking).length },
    errorColumn,
  ],
  texts: bareMap({
    '': 'PodWorkers is what the kubelet of a node does about its pods. It has the name of the node.',
    workers: 'One for each pod that the kubelet knows.',
    error: errorText,
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
