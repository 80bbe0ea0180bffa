/** Growing volumes of CSI drivers on the node: while they are mounted, and while pods use them. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { PersistentVolumeClaim } from '#api/gen/types/core.v1'
import { CsiError, type CsiNode, nodeDriver } from '#testing/csiDriver'
import { bindVolume, type CsiMachine, onCsiMachine, podUsing } from '#testing/csiMachine'

const skip = process.getuid?.() === 0 ? false : 'needs root'
const nothing = () => {}
const staging = { nodeStageVolume: nothing, nodeUnstageVolume: nothing }
const grows = { nodeExpandVolume: () => ({ capacityBytes: 0 }) }
const refuses = (code: ConstructorParameters<typeof CsiError>[0]) => ({
  nodeExpandVolume: () => {
    throw new CsiError(code, 'no')
  },
})

/** The PersistentVolume is larger than its claim says, whose status is this. */
function grown(machine: CsiMachine, status: Partial<NonNullable<PersistentVolumeClaim['status']>>): void {
  bindVolume(machine, 'h', { capacity: { storage: '2Gi' } })
  const claim = machine.objects.get('PersistentVolumeClaim/claim') as PersistentVolumeClaim
  machine.objects.set('PersistentVolumeClaim/claim', { ...claim, status: { phase: 'Bound', capacity: { storage: '1Gi' }, ...status } })
}

const pending = { allocatedResources: { storage: '2Gi' }, allocatedResourceStatuses: { storage: 'NodeResizePending' } }
const inProgress = { allocatedResourceStatuses: { storage: 'NodeResizeInProgress' } }
const done = { capacity: { storage: '2Gi' }, conditions: [], allocatedResourceStatuses: { storage: null } }
const noted = {
  conditions: [
    {
      type: 'NodeResizeError',
      status: 'True',
      lastTransitionTime: '2026-01-01T00:00:00Z',
      message: 'failed to expand pvc with Expander.NodeExpand failed to expand the volume : rpc error: code = ',
    },
  ],
}
const infeasible = { allocatedResourceStatuses: { storage: 'NodeResizeInfeasible' } }

interface Case {
  readonly name: string
  readonly node: Partial<CsiNode>
  readonly status: Parameters<typeof grown>[1]
  /** The statuses that are written; of a message, its beginning. */
  readonly written: readonly object[]
  readonly isReady: boolean
}

const cases: readonly Case[] = [
  { name: 'grows it when no resizer tracks the expansion', node: grows, status: {}, written: [{ capacity: done.capacity, conditions: [] }], isReady: true },
  { name: "grows it when it is the node's turn", node: grows, status: pending, written: [inProgress, done], isReady: true },
  { name: "leaves it while it is the controller's turn", node: grows, status: { allocatedResources: { storage: '2Gi' } }, written: [], isReady: true },
  { name: 'leaves it when the driver cannot grow volumes on a node', node: {}, status: {}, written: [], isReady: true },
  { name: 'starts the pod when the driver cannot grow a volume in use', node: refuses('FAILED_PRECONDITION'), status: {}, written: [], isReady: true },
  { name: 'reports a size that cannot be', node: refuses('OUT_OF_RANGE'), status: pending, written: [inProgress, { ...noted, ...infeasible }], isReady: false },
  { name: 'reports a failure', node: refuses('INTERNAL'), status: pending, written: [inProgress, noted], isReady: false },
]

for (const { name, node, status, written, isReady } of cases) {
  test(`STO-12 mounting a volume that has grown ${name}`, { skip }, () =>
    onCsiMachine({ driver: nodeDriver({ ...staging, ...node }) }, async (machine) => {
      grown(machine, status)
      const outcome = await machine.manager.setUpPod(podUsing('u-1')).then(
        () => true,
        () => false,
      )
      assert.equal(outcome, isReady, machine.events.join())
      const patches = machine.patches.filter((patch) => patch.startsWith('PersistentVolumeClaim'))
      const statuses = patches.map((patch) => JSON.parse(patch.replace(/(code = )[^"]*/g, '$1').replace('PersistentVolumeClaim/claim ', '')).status)
      assert.deepEqual(statuses, written)
    }),
  )
}

test('STO-12 a volume grows while its pod runs', { skip }, () =>
  onCsiMachine({ driver: nodeDriver({ ...staging, ...grows }) }, async (machine) => {
    const { manager, served, root } = machine
    bindVolume(machine, 'h')
    await manager.setUpPod(podUsing('u-1'))
    grown(machine, pending)
    await manager.setUpPod(podUsing('u-1'))
    while (!served.calls.some(({ method }) => method === 'nodeExpandVolume')) await new Promise(setImmediate)
    const { volumePath, capacityRange, stagingTargetPath } = machine.requestOf('nodeExpandVolume')
    assert.equal(volumePath, `${root}/pods/u-1/volumes/kubernetes.io~csi/pv-1/mount`)
    assert.deepEqual(capacityRange, { requiredBytes: 2 * 2 ** 30, limitBytes: 0 })
    assert.equal(stagingTargetPath, machine.requestOf('nodeStageVolume').stagingTargetPath)
    await manager.tearDownPod('u-1')
    const event = 'Normal FileSystemResizeSuccessful MountVolume.NodeExpandVolume succeeded for volume "pv-1" node-1'
    assert.deepEqual(machine.events, [event, event])
  }),
)
