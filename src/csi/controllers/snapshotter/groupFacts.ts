/** The fields and columns of groupsnapshot.storage.k8s.io/v1 (L3). Upstream: external-snapshotter, client/config/crd (v8). */
import { age, className, type DefinitionFacts, failure, flag, object, onceGiven, policy, reference, source, text, time, whole } from './definitionFacts.ts'

const texts = { type: 'array', items: text }
const atomic = { 'x-kubernetes-list-type': 'atomic' }
const requirement = object({ key: text, operator: text, values: { ...texts, ...atomic } }, ['key', 'operator'])
const selector = {
  ...object({ matchLabels: { type: 'object', additionalProperties: text }, matchExpressions: { type: 'array', items: requirement, ...atomic } }),
  'x-kubernetes-map-type': 'atomic',
}
const handles = object({ volumeGroupSnapshotHandle: text, volumeSnapshotHandles: texts }, ['volumeGroupSnapshotHandle', 'volumeSnapshotHandles'])

const groupSpec = object(
  {
    source: source('volumeGroupSnapshotContentName', 'selector', { selector }),
    volumeGroupSnapshotClassName: className('volumeGroupSnapshotClassName'),
  },
  ['source'],
)
const groupStatus = object({
  boundVolumeGroupSnapshotContentName: onceGiven('boundVolumeGroupSnapshotContentName'),
  creationTime: time,
  error: failure,
  readyToUse: flag,
})
const groupReference = reference('volumeGroupSnapshotRef', [
  {
    message: 'volumeGroupSnapshotRef.name and volumeGroupSnapshotRef.namespace are immutable',
    rule: 'self.name == oldSelf.name && self.__namespace__ == oldSelf.__namespace__',
  },
  { message: 'volumeGroupSnapshotRef.uid is immutable once set', rule: '!has(oldSelf.uid) || (has(self.uid) && self.uid == oldSelf.uid)' },
])
const contentSpec = object(
  {
    deletionPolicy: policy,
    driver: onceGiven('driver'),
    source: source('groupSnapshotHandles', 'volumeHandles', { groupSnapshotHandles: handles, volumeHandles: texts }),
    volumeGroupSnapshotClassName: onceGiven('volumeGroupSnapshotClassName'),
    volumeGroupSnapshotRef: groupReference,
  },
  ['deletionPolicy', 'driver', 'source', 'volumeGroupSnapshotRef'],
)
const member = object({ creationTime: whole, readyToUse: flag, restoreSize: whole, snapshotHandle: text, volumeHandle: text })
const contentStatus = object({
  creationTime: time,
  error: failure,
  readyToUse: flag,
  volumeGroupSnapshotHandle: onceGiven('volumeGroupSnapshotHandle'),
  volumeSnapshotInfoList: { type: 'array', items: member },
})
const parameters = {
  ...{ type: 'object', additionalProperties: text },
  'x-kubernetes-validations': [{ message: 'parameters are immutable once set', rule: 'self == oldSelf' }],
}
const approval = 1337

export const groupFacts: readonly DefinitionFacts[] = [
  {
    ...{ kind: 'VolumeGroupSnapshot', shortNames: ['vgs'], scope: 'Namespaced', approval, required: ['spec'] },
    fields: { spec: groupSpec, status: groupStatus },
    columns: [
      ['ReadyToUse', '.status.readyToUse', 'boolean'],
      ['VolumeGroupSnapshotClass', '.spec.volumeGroupSnapshotClassName'],
      ['VolumeGroupSnapshotContent', '.status.boundVolumeGroupSnapshotContentName'],
      ['CreationTime', '.status.creationTime', 'date'],
      age,
    ],
  },
  {
    ...{ kind: 'VolumeGroupSnapshotContent', shortNames: ['vgsc', 'vgscs'], scope: 'Cluster', approval, required: ['spec'] },
    fields: { spec: contentSpec, status: contentStatus },
    columns: [
      ['ReadyToUse', '.status.readyToUse', 'boolean'],
      ['DeletionPolicy', '.spec.deletionPolicy'],
      ['Driver', '.spec.driver'],
      ['VolumeGroupSnapshotClass', '.spec.volumeGroupSnapshotClassName'],
      ['VolumeGroupSnapshotNamespace', '.spec.volumeGroupSnapshotRef.namespace'],
      ['VolumeGroupSnapshot', '.spec.volumeGroupSnapshotRef.name'],
      age,
    ],
  },
  {
    ...{ kind: 'VolumeGroupSnapshotClass', shortNames: ['vgsclass', 'vgsclasses'], scope: 'Cluster', approval, required: ['deletionPolicy', 'driver'] },
    fields: { deletionPolicy: onceGiven('deletionPolicy', policy), driver: onceGiven('driver'), parameters },
    columns: [['Driver', '.driver'], ['DeletionPolicy', '.deletionPolicy'], age],
  },
]
