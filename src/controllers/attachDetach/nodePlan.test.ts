/** Cases of volumes that are attached to a node or detached from it. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Node, PersistentVolume, PersistentVolumeClaim, Pod } from '#api/gen/types/core.v1'
import type { VolumeAttachment } from '#api/gen/types/storage.v1'
import { attachmentName, inTreePluginOf, partsOf, uniqueName, wantedVolumes } from './attachable.ts'
import { type NodeSituation, planNode } from './nodePlan.ts'

const name = uniqueName('d.example.com', 'h')
const minute = 60_000

function node(fields: { ready?: boolean; inUse?: string[]; taint?: boolean } = {}): Node {
  const conditions = [{ type: 'Ready', status: fields.ready === false ? 'Unknown' : 'True' }]
  const taints = fields.taint ? [{ key: 'node.kubernetes.io/out-of-service', effect: 'NoExecute' }] : []
  return { apiVersion: 'v1', kind: 'Node', metadata: { name: 'n' }, spec: { taints }, status: { conditions, volumesInUse: fields.inUse ?? [] } }
}

function volume(modes: string[] = ['ReadWriteOnce']): PersistentVolume {
  const claimRef = { namespace: 'ns', name: 'c', uid: 'u' }
  const spec = { accessModes: modes, csi: { driver: 'd.example.com', volumeHandle: 'h' }, claimRef }
  return { apiVersion: 'v1', kind: 'PersistentVolume', metadata: { name: 'v' }, spec, status: {} }
}

function attachment(attached: boolean, going = false): VolumeAttachment {
  const metadata = { name: 'a', ...(going ? { deletionTimestamp: '2026-01-01T00:00:00Z' } : {}) }
  const spec = { attacher: 'd.example.com', nodeName: 'n', source: { persistentVolumeName: 'v' } }
  return { apiVersion: 'storage.k8s.io/v1', kind: 'VolumeAttachment', metadata, spec, status: { attached } }
}

const wanted = (modes?: string[]) => new Map([[name, { volume: volume(modes), pods: [] }]])
const nobody = new Map()
const has = (one: VolumeAttachment | undefined) => new Map([[name, one]])
const idle: NodeSituation = { node: node(), wanted: nobody, attachments: new Map(), holders: () => [], unwantedForMs: () => 0, neverForce: false }
const inUse = [name]

const cases: readonly (readonly [string, Partial<NodeSituation>, string])[] = [
  ['wanted: attached', { wanted: wanted() }, `attach ${name}`],
  ['wanted and under way: nothing is said yet', { wanted: wanted(), attachments: has(attachment(false)) }, ''],
  ['wanted and there: said', { wanted: wanted(), attachments: has(attachment(true)) }, `report ${name}`],
  ['wanted while it goes: not said, and waited for', { wanted: wanted(), attachments: has(attachment(true, true)) }, ''],
  ['wanted, another node has it', { wanted: wanted(), holders: () => ['m'] }, `taken ${name}`],
  ['wanted, another node has it too', { wanted: wanted(['ReadWriteMany']), holders: () => ['m'] }, `attach ${name}`],
  ['said, but gone: not said any more', { wanted: wanted(), attachments: has(undefined) }, `attach ${name}`],
  ['unwanted: detached', { attachments: has(attachment(true)) }, `detach ${name}`],
  ['unwanted and mounted: waited for', { node: node({ inUse }), attachments: has(attachment(true)) }, `report ${name} again 360001`],
  [
    'unwanted and mounted for long, node well',
    { node: node({ inUse }), attachments: has(attachment(true)), unwantedForMs: () => 7 * minute },
    `report ${name} again 1`,
  ],
  [
    'unwanted and mounted for long, node silent',
    { node: node({ inUse, ready: false }), attachments: has(attachment(true)), unwantedForMs: () => 7 * minute },
    `detach ${name} timeout`,
  ],
  [
    'the same where that is not allowed',
    { node: node({ inUse, ready: false }), attachments: has(attachment(true)), unwantedForMs: () => 7 * minute, neverForce: true },
    `report ${name} again 1`,
  ],
  [
    'unwanted and mounted, node out of service',
    { node: node({ inUse, ready: false, taint: true }), attachments: has(attachment(true)) },
    `detach ${name} out-of-service`,
  ],
  ['node gone: waited for', { node: undefined, attachments: has(attachment(true)) }, `report ${name} again 360001`],
  ['node gone for long', { node: undefined, attachments: has(attachment(true)), unwantedForMs: () => 7 * minute }, `detach ${name} timeout`],
  ['unwanted and going already', { attachments: has(attachment(true, true)) }, ''],
]

const disk = 'kubernetes.io/iscsi/192.0.2.1:3260:iqn.2026-01.com.example:disk:0'
const wantedDisk = (modes?: string[]) => new Map([[disk, { volume: volume(modes), pods: [] }]])
const reportedDisk = new Map([[disk, attachment(true)]])
const inTreeCases: typeof cases = [
  ['in-tree volume wanted: said at once', { wanted: wantedDisk() }, `attach ${disk} report ${disk}`],
  ['in-tree volume said already', { wanted: wantedDisk(), attachments: reportedDisk }, `report ${disk}`],
  ['in-tree volume that another node has', { wanted: wantedDisk(), holders: () => ['m'] }, `taken ${disk}`],
  ['in-tree volume that another node may have too', { wanted: wantedDisk(['ReadOnlyMany']), holders: () => ['m'] }, `attach ${disk} report ${disk}`],
  ['in-tree volume unwanted: not said any more', { attachments: reportedDisk }, `detach ${disk}`],
  ['in-tree volume unwanted and mounted', { node: node({ inUse: [disk] }), attachments: reportedDisk }, `report ${disk} again 360001`],
]

for (const [what, fields, want] of [...cases, ...inTreeCases]) {
  test(`STO-10 ${what}`, () => {
    const plan = planNode({ ...idle, ...fields })
    const words = [
      ...plan.attach.map((one) => `attach ${one}`),
      ...plan.detach.map((one) => `detach ${one.name}${one.forced ? ` ${one.forced}` : ''}`),
      ...plan.taken.map((one) => `taken ${one}`),
      ...plan.report.map((one) => `report ${one}`),
      ...(plan.lookAgainMs === undefined ? [] : [`again ${plan.lookAgainMs}`]),
    ]
    assert.equal(words.join(' '), want)
  })
}

test('STO-10 names of VolumeAttachments identify volume, driver and node', () => {
  assert.equal(name, 'kubernetes.io/csi/d.example.com^h')
  assert.deepEqual(partsOf(name), { driver: 'd.example.com', handle: 'h' })
  for (const other of ['kubernetes.io/iscsi/x', 'kubernetes.io/csi/d', 'kubernetes.io/csi/d^a^b']) assert.equal(partsOf(other), undefined)
  assert.equal(attachmentName('d', 'h', 'n'), 'csi-9072ed11cc1acb5fa433a877ff339b6311d013f33bddd1d0092711a8ace5b16d')
})

test('STO-10 pods that have not ended need their bound claims of attachable drivers', () => {
  const claim = { metadata: { namespace: 'ns', name: 'c', uid: 'u' }, spec: { volumeName: 'v' }, status: { phase: 'Bound' } } as PersistentVolumeClaim
  const pod = (phase: string, deleted = false, state = {}): Pod => ({
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { namespace: 'ns', name: 'p', ...(deleted ? { deletionTimestamp: '2026-01-01T00:00:00Z' } : {}) },
    spec: { containers: [], volumes: [{ name: 'x', persistentVolumeClaim: { claimName: 'c' } }] },
    status: { phase, containerStatuses: [{ name: 'c', ready: true, restartCount: 0, image: 'i', imageID: '', state }] },
  })
  const view = { claim: () => claim, volume: () => volume(), attaches: () => true }
  const names = (one: Pod, changes: object = {}) => [...wantedVolumes([one], { ...view, ...changes }).keys()]
  const running = { running: {} }
  assert.deepEqual(names(pod('Pending')), [name])
  assert.deepEqual(names(pod('Running', true, running)), [name])
  assert.deepEqual(names(pod('Running', true, { terminated: { exitCode: 0 } })), [])
  assert.deepEqual(names(pod('Succeeded')), [])
  assert.deepEqual(names(pod('Running'), { attaches: () => false }), [])
  assert.deepEqual(names(pod('Running'), { claim: () => ({ ...claim, status: { phase: 'Pending' } }) }), [])
  assert.deepEqual(names(pod('Running'), { claim: () => ({ ...claim, metadata: { ...claim.metadata, uid: 'other' } }) }), [])
})

const targetWWNs = ['50060e801049cfd1', '50060e801049cfd2']
const inTreeVolumes: readonly (readonly [what: string, source: Partial<PersistentVolume['spec']>, want: string | undefined])[] = [
  ['iSCSI', { iscsi: { targetPortal: '192.0.2.1:3260', iqn: 'iqn.2026-01.com.example:disk', lun: 0 } }, disk],
  ['Fibre Channel by target and lun', { fc: { targetWWNs, lun: 2 } }, 'kubernetes.io/fc/[50060e801049cfd1 50060e801049cfd2]:2'],
  ['Fibre Channel by identifier', { fc: { wwids: ['3600508b400105e21'] } }, 'kubernetes.io/fc/[3600508b400105e21]'],
  ['Fibre Channel with more than a name holds', { fc: { wwids: ['x'.repeat(2_000)] } }, undefined],
  ['NFS', { nfs: { server: 'nfs.example.com', path: '/' } }, undefined],
]
for (const [what, source, want] of inTreeVolumes) {
  test(`STO-20 the name of a volume in the status of nodes: ${what}`, () => {
    const claim = { metadata: { uid: 'u' }, spec: { volumeName: 'v' }, status: { phase: 'Bound' } } as PersistentVolumeClaim
    const { csi: _, ...spec } = volume().spec
    const pod = { metadata: {}, spec: { volumes: [{ name: 'x', persistentVolumeClaim: { claimName: 'c' } }] } } as Pod
    const view = { claim: () => claim, volume: () => ({ ...volume(), spec: { ...spec, ...source } }), attaches: () => true }
    assert.deepEqual([...wantedVolumes([pod], view).keys()], want === undefined ? [] : [want])
    if (want) assert.equal(inTreePluginOf(want), want.split('/').slice(0, 2).join('/'))
  })
}
