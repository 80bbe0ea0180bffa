/** VolumeRestrictions, VolumeZone and NodeVolumeLimits, case by case. Upstream: plugins/volumerestrictions, volumezone, nodevolumelimits (v1.36). */
import type { PersistentVolumeClaim, Volume } from '#api/gen/types/core.v1'
import type { CSINode, StorageClass, VolumeAttachment } from '#api/gen/types/storage.v1'
import { csiNodes, volumeAttachments } from '#client/builtIn'
import { type Case, node, placements, pod } from './table.ts'
import {
  all,
  atOnce,
  before,
  claim,
  claims,
  classes,
  ephemeral,
  inZone,
  late,
  type Objects,
  of,
  oldZone,
  two,
  user,
  using,
  volume,
  volumes,
  withVolumes,
  zone,
} from './volumeObjects.ts'

const disk = (pdName: string, readOnly = false): Volume => ({ name: pdName, gcePersistentDisk: { pdName, readOnly } })
const ebs = (volumeID: string): Volume => ({ name: volumeID, awsElasticBlockStore: { volumeID } })
const iscsi = (iqn: string, readOnly = false): Volume => ({ name: 'iscsi', iscsi: { targetPortal: '10.0.0.1', iqn, lun: 0, readOnly } })
const rbd = (monitors: string[], image: string, readOnly = false, pool = 'p'): Volume => ({ name: 'rbd', rbd: { monitors, image, pool, readOnly } })
const mounted = (on: string, ...all: Volume[]) => pod({ on, spec: { volumes: all } })
const shared = (name: string, mine: Volume, theirs: Volume, fits: string): Case => ({
  name,
  pod: withVolumes(mine),
  nodes: two,
  placed: [mounted('a', theirs)],
  fits,
})
const oncePod = claim('data', { volume: 'v', modes: ['ReadWriteOncePod'] })
placements('SCH-09', 'VolumeRestrictions', [
  { name: 'no volumes', pod: pod(), nodes: two, fits: 'a b' },
  shared('another disk', disk('d'), disk('e'), 'a b'),
  shared('the same disk', disk('d'), disk('d'), 'b'),
  shared('a disk read by one, written by the other', disk('d', true), disk('d'), 'b'),
  shared('a disk that both read', disk('d', true), disk('d', true), 'a b'),
  shared('another EBS volume', ebs('v'), ebs('w'), 'a b'),
  shared('the same EBS volume', ebs('v'), ebs('v'), 'b'),
  shared('the same iSCSI target', iscsi('iqn.a'), iscsi('iqn.a'), 'b'),
  shared('the same iSCSI target, only read', iscsi('iqn.a', true), iscsi('iqn.a', true), 'a b'),
  shared('another iSCSI target', iscsi('iqn.a'), iscsi('iqn.b'), 'a b'),
  shared('the same image by one common monitor', rbd(['m', 'n'], 'i'), rbd(['n', 'o'], 'i'), 'b'),
  shared('no common monitor', rbd(['m'], 'i'), rbd(['o'], 'i'), 'a b'),
  shared('another image', rbd(['m'], 'i'), rbd(['m'], 'j'), 'a b'),
  shared('another pool', rbd(['m'], 'i', false, 'p'), rbd(['m'], 'i', false, 'q'), 'a b'),
  shared('an image that both read', rbd(['m'], 'i', true), rbd(['m'], 'i', true), 'a b'),
  {
    name: 'the message',
    pod: withVolumes(disk('d')),
    nodes: [node('a')],
    placed: [mounted('a', disk('d'))],
    message: all(1, 'node(s) had no available disk'),
    code: 'Unschedulable',
  },
  {
    name: 'a claim that does not exist',
    pod: user('data'),
    nodes: two,
    message: before(2, 'persistentvolumeclaim "data" not found'),
    code: 'UnschedulableAndUnresolvable',
  },
  { name: 'an unused ReadWriteOncePod claim', pod: user('data'), nodes: two, objects: [claims(oncePod)], fits: 'a b' },
  {
    name: 'a claim for one pod that another one uses, wherever',
    pod: user('data'),
    nodes: two,
    placed: [mounted('a', ...using('data'))],
    objects: [claims(oncePod)],
    message: all(2, 'node has pod using PersistentVolumeClaim with the same name and ReadWriteOncePod access mode'),
    code: 'Unschedulable',
  },
  {
    name: 'a claim for one node that another pod uses',
    pod: user('data'),
    nodes: two,
    placed: [mounted('a', ...using('data'))],
    objects: [claims(claim('data', { volume: 'v' }))],
    fits: 'a b',
  },
  {
    name: 'a claim of that name in another namespace',
    pod: user('data'),
    nodes: two,
    placed: [pod({ namespace: 'other', on: 'a', spec: { volumes: using('data') } })],
    objects: [claims(oncePod)],
    fits: 'a b',
  },
])

const zoneCase = (name: string, labels: Record<string, string>, nodes: Case['nodes'], fits: string): Case => ({
  name,
  pod: user('data'),
  nodes,
  objects: [claims(claim('data', { volume: 'v' })), volumes(volume('v', { labels }))],
  fits,
})
const unbound = (name: string, spec: Partial<PersistentVolumeClaim['spec']>, storage: StorageClass[], message: string): Case => ({
  name,
  pod: user('data'),
  nodes: two,
  objects: [claims(claim('data', { spec })), classes(...storage)],
  message: before(2, message),
  code: 'UnschedulableAndUnresolvable',
})
placements('SCH-09', 'VolumeZone', [
  { name: 'no volumes', pod: pod(), nodes: two, fits: 'a b' },
  zoneCase('a volume without labels', {}, two, 'a b'),
  zoneCase('a volume of a zone', { [zone]: 'x' }, two, 'a'),
  zoneCase('of several zones', { [zone]: 'x__z' }, [...two, inZone('c', 'z')], 'a c'),
  zoneCase('a label that says nothing', { [zone]: 'x__' }, two, 'a b'),
  zoneCase('the old label, on nodes that have the new one', { [oldZone]: 'y' }, two, 'b'),
  zoneCase('the old label on both', { [oldZone]: 'y' }, [node('a', { labels: { [oldZone]: 'x' } }), node('b', { labels: { [oldZone]: 'y' } })], 'b'),
  zoneCase(
    'a region',
    { 'topology.kubernetes.io/region': 'r' },
    [node('a', { labels: { 'topology.kubernetes.io/region': 'r' } }), node('b', { labels: { 'topology.kubernetes.io/region': 's' } })],
    'a',
  ),
  zoneCase('nodes that name no zone keep nobody out', { [zone]: 'x' }, [node('a'), inZone('b', 'y')], 'a'),
  zoneCase('a node with a region only', { [zone]: 'x' }, [node('a', { labels: { 'topology.kubernetes.io/region': 'r' } }), inZone('b', 'x')], 'b'),
  zoneCase(
    'zone and region both',
    { [zone]: 'x', 'topology.kubernetes.io/region': 'r' },
    [inZone('a', 'x'), node('b', { labels: { [zone]: 'x', 'topology.kubernetes.io/region': 'r' } })],
    'b',
  ),
  {
    name: 'the message',
    pod: user('data'),
    nodes: [inZone('a', 'y')],
    objects: [claims(claim('data', { volume: 'v' })), volumes(volume('v', { labels: { [zone]: 'x' } }))],
    message: all(1, 'node(s) had no available volume zone'),
    code: 'UnschedulableAndUnresolvable',
  },
  { name: 'a claim that does not exist', pod: user('data'), nodes: two, message: before(2, 'persistentvolumeclaim "data" not found') },
  {
    name: 'a volume that does not exist',
    pod: user('data'),
    nodes: two,
    objects: [claims(claim('data', { volume: 'v' }))],
    message: before(2, 'persistentvolume "v" not found'),
  },
  unbound('neither volume nor class', { storageClassName: '' }, [], 'PersistentVolumeClaim had no pv name and storageClass name'),
  unbound('a class that does not exist', {}, [], 'storageclass.storage.k8s.io "late" not found'),
  unbound('a claim that should be bound by now', { storageClassName: 'at-once' }, [atOnce], 'PersistentVolume had no name'),
  { name: 'a claim that waits for its pod', pod: user('data'), nodes: two, objects: [claims(claim('data')), classes(late)], fits: 'a b' },
])

const csi = (volumeHandle: string, driverName = 'csi.example.com') => ({ spec: { csi: { driver: driverName, volumeHandle } } })
const limits = (name: string, count: number | undefined, driverName = 'csi.example.com'): CSINode => ({
  apiVersion: 'storage.k8s.io/v1',
  kind: 'CSINode',
  metadata: { name },
  spec: { drivers: [{ name: driverName, nodeID: name, ...(count === undefined ? {} : { allocatable: { count } }) }] },
})
const attachment = (persistentVolumeName: string, nodeName: string): VolumeAttachment => ({
  apiVersion: 'storage.k8s.io/v1',
  kind: 'VolumeAttachment',
  metadata: { name: `${persistentVolumeName}-${nodeName}` },
  spec: { attacher: 'csi.example.com', nodeName, source: { persistentVolumeName } },
  status: { attached: true },
})
const bound = ['one', 'two', 'three']
const world = [
  claims(...bound.map((name) => claim(name, { volume: name })), claim('new'), claim('newer')),
  volumes(...bound.map((name) => volume(name, csi(name))), volume('old', csi('old'))),
]
const limited = (name: string, count: number | undefined, users: string[], placedClaims: string[], fits: string, more: Objects[] = []): Case => ({
  name,
  pod: user(...users),
  nodes: two,
  placed: placedClaims.map((claimName) => mounted('a', ...using(claimName))),
  objects: [...world, classes(late), of(csiNodes, limits('a', count)), ...more],
  fits,
})
placements('SCH-09', 'NodeVolumeLimits', [
  { name: 'no claims', pod: pod(), nodes: two, objects: [of(csiNodes, limits('a', 0))], fits: 'a b' },
  limited('room for one more', 2, ['two'], ['one'], 'a b'),
  limited('full', 1, ['two'], ['one'], 'b'),
  limited('two at once are too many', 2, ['two', 'three'], ['one'], 'b'),
  limited('a volume that is there already costs nothing', 1, ['one'], ['one'], 'a b'),
  limited('a volume that two pods share counts once', 2, ['two'], ['one', 'one'], 'a b'),
  limited('no limit', undefined, ['two'], ['one'], 'a b'),
  limited('a volume that will be made counts', 1, ['new'], ['one'], 'b'),
  limited('as do those of others that are not made yet', 1, ['newer'], ['new'], 'b'),
  limited('a limit of nothing', 0, ['new'], [], 'b'),
  limited('a volume still attached counts', 1, ['two'], [], 'b', [of(volumeAttachments, attachment('old', 'a'))]),
  limited('elsewhere it does not', 1, ['two'], [], 'a b', [of(volumeAttachments, attachment('old', 'b'))]),
  limited('an attached volume of a pod there counts once', 2, ['two'], ['one'], 'a b', [of(volumeAttachments, attachment('one', 'a'))]),
  limited('one’s own volume may be attached already', 1, ['one'], [], 'a b', [of(volumeAttachments, attachment('one', 'a'))]),
  {
    name: 'another driver’s limit',
    pod: user('two'),
    nodes: two,
    placed: [mounted('a', ...using('one'))],
    objects: [...world, classes(late), of(csiNodes, limits('a', 1, 'other.example.com'))],
    fits: 'a b',
  },
  {
    name: 'the volume of one’s own',
    pod: pod({ name: 'user', spec: { volumes: ephemeral } }),
    nodes: two,
    objects: [claims(claim('user-scratch')), classes(late), of(csiNodes, limits('a', 0))],
    fits: 'b',
  },
  {
    name: 'the message',
    pod: user('two'),
    nodes: [node('a')],
    placed: [mounted('a', ...using('one'))],
    objects: [...world, of(csiNodes, limits('a', 1))],
    message: all(1, 'node(s) exceed max volume count'),
    code: 'Unschedulable',
  },
])
