/** Plans for claims and volumes, by case; the cases of upstream's binder_test.go. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { PersistentVolume, PersistentVolumeClaim } from '#api/gen/types/core.v1'
import type { StorageClass } from '#api/gen/types/storage.v1'
import { promisedTo } from '#api/helpers/volumes'
import { Indexer } from '#client/cache/indexer'
import { withDeletionFinalizer, withDriver } from '../shared/csiMigration.ts'
import { type ClaimPlan, planClaim } from './claimPlan.ts'
import { bestVolumeFor, volumeIndexers } from './matching.ts'
import { isReleased, planVolume, unbound } from './volumePlan.ts'
import { deleterOf, provisionerOf } from './volumePlugins.ts'

const done = { 'pv.kubernetes.io/bind-completed': 'yes' }
const chosen = { 'pv.kubernetes.io/bound-by-controller': 'yes' }
const made = { 'pv.kubernetes.io/provisioned-by': 'csi.example.com' }

function claim(spec: Partial<PersistentVolumeClaim['spec']> = {}, annotations: Record<string, string> = {}): PersistentVolumeClaim {
  return {
    apiVersion: 'v1',
    kind: 'PersistentVolumeClaim',
    metadata: { namespace: 'ns', name: 'data', uid: 'u1', resourceVersion: '7', annotations },
    spec: { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '5Gi' } }, storageClassName: '', ...spec },
    status: { phase: 'Pending' },
  }
}

function volume(name: string, spec: Partial<PersistentVolume['spec']> = {}, annotations: Record<string, string> = {}): PersistentVolume {
  return {
    apiVersion: 'v1',
    kind: 'PersistentVolume',
    metadata: { name, annotations },
    spec: { accessModes: ['ReadWriteOnce'], capacity: { storage: '10Gi' }, persistentVolumeReclaimPolicy: 'Retain', ...spec },
    status: { phase: 'Available' },
  }
}

const refTo = (uid: string | undefined, name = 'data') => ({ kind: 'PersistentVolumeClaim', namespace: 'ns', name, ...(uid ? { uid } : {}) })

function classOf(name: string, fields: Partial<StorageClass> = {}): StorageClass {
  return { apiVersion: 'storage.k8s.io/v1', kind: 'StorageClass', metadata: { name }, provisioner: 'csi.example.com', ...fields }
}

interface World {
  readonly volumes?: readonly PersistentVolume[]
  readonly classes?: readonly StorageClass[]
  readonly defaultClass?: string
  readonly waiting?: readonly string[]
}

function plan(of: PersistentVolumeClaim, { volumes = [], classes = [], defaultClass, waiting = [] }: World): ClaimPlan {
  const store = new Indexer<PersistentVolume>(volumeIndexers)
  for (const one of volumes) store.set(one)
  return planClaim(of, {
    volume: (name) => store.get(name),
    storageClass: (name) => classes.find(({ metadata }) => metadata.name === name),
    defaultClass: () => defaultClass,
    best: (one, onlyPrebound) => bestVolumeFor(one, store, onlyPrebound),
    waitingPods: () => waiting,
  })
}

/** A plan as text: the action, its object, and the event. */
function planText(decided: ClaimPlan): string {
  if (decided.act === 'bind') return `bind ${decided.volume.metadata.name}`
  if (decided.act === 'setClass') return `class ${decided.name}`
  if (decided.act === 'provision') return 'provision'
  const event = decided.event ? `${decided.event.type} ${decided.event.reason}: ${decided.event.message}` : ''
  return `${decided.act} ${event}${decided.act === 'wait' && decided.fault !== undefined ? ` fault ${decided.fault}` : ''}`.trim()
}

const late = classOf('late', { volumeBindingMode: 'WaitForFirstConsumer' })
const now = classOf('now', { volumeBindingMode: 'Immediate' })
const none = 'wait Normal FailedBinding: no persistent volumes available for this claim and no storage class is set'

const claimCases: readonly (readonly [name: string, of: PersistentVolumeClaim, world: World, want: string])[] = [
  [
    'the smallest that suffices',
    claim(),
    { volumes: [volume('a', { capacity: { storage: '20Gi' } }), volume('b'), volume('c', { capacity: { storage: '1Gi' } })] },
    'bind b',
  ],
  [
    'one that is meant for it before a smaller one',
    claim(),
    { volumes: [volume('a'), volume('b', { capacity: { storage: '50Gi' }, claimRef: refTo(undefined) })] },
    'bind b',
  ],
  ['one that is meant for it, of another class', claim(), { volumes: [volume('b', { storageClassName: 'x', claimRef: refTo(undefined) })] }, 'bind b'],
  ['none that is meant for another claim', claim(), { volumes: [volume('a', { claimRef: refTo(undefined, 'other') })] }, none],
  ['none that is meant for a former claim of its name', claim(), { volumes: [volume('a', { claimRef: refTo('u0') })] }, none],
  [
    'fewest modes first, even when larger',
    claim(),
    { volumes: [volume('a', { accessModes: ['ReadWriteOnce', 'ReadWriteMany'] }), volume('b', { capacity: { storage: '90Gi' } })] },
    'bind b',
  ],
  ['none without its mode', claim({ accessModes: ['ReadWriteMany'] }), { volumes: [volume('a')] }, none],
  ['none of another volume mode', claim({ volumeMode: 'Block' }), { volumes: [volume('a')] }, none],
  ['none of another attributes class', claim({ volumeAttributesClassName: 'fast' }), { volumes: [volume('a')] }, none],
  ['only what the selector picks', claim({ selector: { matchLabels: { a: 'b' } } }), { volumes: [volume('a')] }, none],
  ['none that goes', claim(), { volumes: [{ ...volume('a'), metadata: { name: 'a', deletionTimestamp: '2026-01-01T00:00:00Z' } }] }, none],
  ['none that is not free yet', claim(), { volumes: [{ ...volume('a'), status: { phase: 'Released' } }] }, none],
  ['its own class only', claim({ storageClassName: 'now' }), { volumes: [volume('a'), volume('b', { storageClassName: 'now' })], classes: [now] }, 'bind b'],
  ['a class makes one', claim({ storageClassName: 'now' }), { classes: [now] }, 'provision'],
  ['a class that is not there fails while provisioning', claim({ storageClassName: 'gone' }), {}, 'provision'],
  ['the default class, where none was named', claim({ storageClassName: undefined }), { defaultClass: 'now', classes: [now] }, 'class now'],
  ['no default where no class was wanted', claim(), { defaultClass: 'now', classes: [now] }, none],
  ['a volume before the default class', claim({ storageClassName: undefined }), { defaultClass: 'now', volumes: [volume('a')] }, 'bind a'],
  [
    'a late class waits',
    claim({ storageClassName: 'late' }),
    { classes: [late], volumes: [volume('a', { storageClassName: 'late' })] },
    'wait Normal WaitForFirstConsumer: waiting for first consumer to be created before binding',
  ],
  [
    'a late class waits for a pod',
    claim({ storageClassName: 'late' }),
    { classes: [late], waiting: ['p'] },
    'wait Normal WaitForPodScheduled: waiting for pod p to be scheduled',
  ],
  [
    'a late class waits for pods',
    claim({ storageClassName: 'late' }),
    { classes: [late], waiting: ['p', 'q'] },
    'wait Normal WaitForPodScheduled: waiting for pods p,q to be scheduled',
  ],
  ['a late class with a node makes one', claim({ storageClassName: 'late' }, { 'volume.kubernetes.io/selected-node': 'n' }), { classes: [late] }, 'provision'],
  [
    'what the scheduler promised is bound',
    claim({ storageClassName: 'late' }),
    { classes: [late], volumes: [volume('a', { storageClassName: 'late', claimRef: refTo('u1') }, chosen)] },
    'bind a',
  ],
  ['asked for and absent', claim({ volumeName: 'x' }), {}, 'wait'],
  ['asked for and free', claim({ volumeName: 'a' }), { volumes: [volume('a')] }, 'bind a'],
  ['asked for and meant for it', claim({ volumeName: 'a' }), { volumes: [volume('a', { claimRef: refTo(undefined) })] }, 'bind a'],
  [
    'asked for and too small',
    claim({ volumeName: 'a' }),
    { volumes: [volume('a', { capacity: { storage: '1Gi' } })] },
    'wait Warning VolumeMismatch: Cannot bind to requested volume "a": requested PV is too small',
  ],
  [
    'asked for and of another class',
    claim({ volumeName: 'a' }),
    { volumes: [volume('a', { storageClassName: 'x' })] },
    'wait Warning VolumeMismatch: Cannot bind to requested volume "a": storageClassName does not match',
  ],
  [
    'asked for and of another mode',
    claim({ volumeName: 'a' }),
    { volumes: [volume('a', { volumeMode: 'Block' })] },
    'wait Warning VolumeMismatch: Cannot bind to requested volume "a": incompatible volumeMode',
  ],
  [
    'asked for and for others',
    claim({ volumeName: 'a', accessModes: ['ReadWriteMany'] }),
    { volumes: [volume('a')] },
    'wait Warning VolumeMismatch: Cannot bind to requested volume "a": incompatible accessMode',
  ],
  [
    'asked for and taken',
    claim({ volumeName: 'a' }),
    { volumes: [volume('a', { claimRef: refTo('u9', 'other') })] },
    'wait Warning FailedBinding: volume "a" already bound to a different claim.',
  ],
  [
    'bound by us to what another has',
    claim({ volumeName: 'a' }, chosen),
    { volumes: [volume('a', { claimRef: refTo('u9', 'other') })] },
    'wait Warning FailedBinding: volume "a" already bound to a different claim. fault invalid binding of claim "ns/data" to volume "a": volume already claimed by "ns/other"',
  ],
  ['bound and well', claim({ volumeName: 'a' }, done), { volumes: [volume('a', { claimRef: refTo('u1') })] }, 'bind a'],
  ['bound, and the volume forgot', claim({ volumeName: 'a' }, done), { volumes: [volume('a')] }, 'bind a'],
  ['bound to nothing', claim({}, done), {}, 'lose Warning ClaimLost: Bound claim has lost reference to PersistentVolume. Data on the volume is lost!'],
  [
    'bound to what is gone',
    claim({ volumeName: 'a' }, done),
    {},
    'lose Warning ClaimLost: Bound claim has lost its PersistentVolume. Data on the volume is lost!',
  ],
  [
    'bound to what another has',
    claim({ volumeName: 'a' }, done),
    { volumes: [volume('a', { claimRef: refTo('u9') })] },
    'lose Warning ClaimMisbound: Two claims are bound to the same volume, this one is bound incorrectly',
  ],
]

for (const [name, of, world, want] of claimCases) test(`STO-04 claim: ${name}`, () => assert.equal(planText(plan(of, world)), want))

const bound = (volumeName: string) => claim({ volumeName }, done)
const spare = { persistentVolumeReclaimPolicy: 'Delete', claimRef: refTo('u1') }
const volumeCases: readonly (readonly [name: string, of: PersistentVolume, claim: PersistentVolumeClaim | undefined, want: string])[] = [
  ['free', volume('a'), undefined, 'setPhase Available'],
  ['meant for a claim to come', volume('a', { claimRef: refTo(undefined) }), undefined, 'setPhase Available'],
  ['its claim is gone', volume('a', { claimRef: refTo('u1') }), undefined, 'reclaim'],
  ['its claim does not know yet', volume('a', { claimRef: refTo('u1') }, chosen), claim(), 'syncClaim'],
  ['its claim wants another mode', volume('a', { claimRef: refTo('u1'), volumeMode: 'Block' }), claim(), 'reportMode'],
  ['bound both ways', volume('a', { claimRef: refTo('u1') }), bound('a'), 'setPhase Bound'],
  ['made for a claim that found another', volume('a', spare, made), bound('b'), 'reclaim'],
  ['chosen for a claim that found another', volume('a', { claimRef: refTo('u1') }, chosen), bound('b'), 'unbind'],
]

for (const [name, of, itsClaim, want] of volumeCases) {
  test(`STO-05 volume: ${name}`, () => {
    const decided = planVolume(of, itsClaim)
    assert.equal(`${decided.act}${decided.act === 'setPhase' ? ` ${decided.phase}` : ''}`, want)
  })
}

test('STO-05 a promise of the controller goes whole, one of a person keeps the name', () => {
  const free = unbound(promisedTo(volume('a', {}, made), claim()))
  assert.deepEqual([free.spec.claimRef, free.metadata.annotations], [undefined, made])
  assert.deepEqual(unbound(promisedTo(volume('a', { claimRef: refTo(undefined) }), claim())).spec.claimRef, {
    apiVersion: 'v1',
    kind: 'PersistentVolumeClaim',
    namespace: 'ns',
    name: 'data',
    resourceVersion: '7',
  })
})

test('STO-05 released is what no claim with the right uid uses', () => {
  const mine = volume('a', { claimRef: refTo('u1') })
  const cases = [
    [volume('a'), undefined, false],
    [volume('a', { claimRef: refTo(undefined) }), undefined, false],
    [mine, undefined, true],
    [mine, { ...claim(), metadata: { namespace: 'ns', name: 'data', uid: 'u2' } }, true],
    [mine, claim(), false],
    [mine, bound('a'), false],
    [mine, bound('b'), true],
  ] as const
  for (const [of, itsClaim, want] of cases)
    assert.equal(
      isReleased(of, (key) => (key === 'ns/data' ? itsClaim : undefined)),
      want,
    )
})

test('STO-06 who makes and who deletes a volume', () => {
  assert.deepEqual(provisionerOf('csi.example.com'), { kind: 'external', name: 'csi.example.com' })
  assert.deepEqual(provisionerOf('kubernetes.io/aws-ebs'), { kind: 'external', name: 'ebs.csi.aws.com' })
  assert.deepEqual(provisionerOf('kubernetes.io/no-provisioner'), { kind: 'none', problem: 'no volume plugin matched name: kubernetes.io/no-provisioner' })
  assert.deepEqual(provisionerOf('kubernetes.io/nfs'), { kind: 'none', problem: 'no provisionable volume plugin matched' })
  assert.deepEqual(deleterOf(volume('a', {}, made)), { kind: 'external' })
  assert.deepEqual(deleterOf(volume('a', { csi: { driver: 'd', volumeHandle: 'h' } })), { kind: 'external' })
  assert.deepEqual(deleterOf(volume('a', { hostPath: { path: '/tmp/x' } })), { kind: 'hostPath', path: '/tmp/x' })
  const problem = 'error getting deleter volume plugin for volume "a": no deletable volume plugin matched'
  assert.deepEqual(deleterOf(volume('a', { nfs: { server: 's', path: '/' } })), { kind: 'none', problem })
})

test('STO-06 a volume of a migrated in-tree plugin is annotated with its CSI driver and has a finalizer until it is deleted', () => {
  const of = (provisioner: string) => volume('a', { persistentVolumeReclaimPolicy: 'Delete' }, { 'pv.kubernetes.io/provisioned-by': provisioner })
  const migrated = withDriver(of('kubernetes.io/gce-pd'), 'kubernetes.io/gce-pd')
  assert.equal(migrated.metadata.annotations?.['pv.kubernetes.io/migrated-to'], 'pd.csi.storage.gke.io')
  assert.equal(withDriver(migrated, 'kubernetes.io/gce-pd'), migrated)
  assert.deepEqual(withDeletionFinalizer(of('kubernetes.io/host-path')).metadata.finalizers, ['kubernetes.io/pv-controller'])
  const external = of('csi.example.com')
  assert.equal(withDeletionFinalizer(external), external)
  assert.equal(withDriver(external, 'csi.example.com'), external)
})
