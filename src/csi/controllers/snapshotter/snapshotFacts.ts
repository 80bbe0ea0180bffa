/** The fields and columns of snapshot.storage.k8s.io/v1 (L3). Upstream: external-snapshotter, client/config/crd (v8). */
import { age, className, type DefinitionFacts, failure, fixed, flag, object, onceSet, policy, reference, source, text, time, whole } from './definitionFacts.ts'

const quantity = {
  type: 'string',
  pattern: String.raw`^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))))?$`,
  'x-kubernetes-int-or-string': true,
}

const snapshotSpec = object(
  {
    source: source('persistentVolumeClaimName', 'volumeSnapshotContentName'),
    volumeSnapshotClassName: className('volumeSnapshotClassName'),
  },
  ['source'],
)
const snapshotStatus = object({
  boundVolumeSnapshotContentName: text,
  creationTime: time,
  error: failure,
  readyToUse: flag,
  restoreSize: quantity,
  volumeGroupSnapshotName: text,
})
const contentSpec = object(
  {
    deletionPolicy: policy,
    driver: text,
    source: source('volumeHandle', 'snapshotHandle'),
    sourceVolumeMode: fixed('sourceVolumeMode'),
    volumeSnapshotClassName: text,
    volumeSnapshotRef: reference('spec.volumeSnapshotRef'),
  },
  ['deletionPolicy', 'driver', 'source', 'volumeSnapshotRef'],
  [onceSet('sourceVolumeMode')],
)
const contentStatus = object({
  creationTime: whole,
  error: failure,
  readyToUse: flag,
  restoreSize: { ...whole, minimum: 0 },
  snapshotHandle: text,
  volumeGroupSnapshotHandle: text,
})

export const snapshotFacts: readonly DefinitionFacts[] = [
  {
    ...{ kind: 'VolumeSnapshot', shortNames: ['vs'], scope: 'Namespaced', approval: 814, required: ['spec'] },
    fields: { spec: snapshotSpec, status: snapshotStatus },
    columns: [
      ['ReadyToUse', '.status.readyToUse', 'boolean'],
      ['SourcePVC', '.spec.source.persistentVolumeClaimName'],
      ['SourceSnapshotContent', '.spec.source.volumeSnapshotContentName'],
      ['RestoreSize', '.status.restoreSize'],
      ['SnapshotClass', '.spec.volumeSnapshotClassName'],
      ['SnapshotContent', '.status.boundVolumeSnapshotContentName'],
      ['CreationTime', '.status.creationTime', 'date'],
      age,
    ],
  },
  {
    ...{ kind: 'VolumeSnapshotContent', shortNames: ['vsc', 'vscs'], scope: 'Cluster', approval: 955, required: ['spec'] },
    fields: { spec: contentSpec, status: contentStatus },
    columns: [
      ['ReadyToUse', '.status.readyToUse', 'boolean'],
      ['RestoreSize', '.status.restoreSize', 'integer'],
      ['DeletionPolicy', '.spec.deletionPolicy'],
      ['Driver', '.spec.driver'],
      ['VolumeSnapshotClass', '.spec.volumeSnapshotClassName'],
      ['VolumeSnapshot', '.spec.volumeSnapshotRef.name'],
      ['VolumeSnapshotNamespace', '.spec.volumeSnapshotRef.namespace'],
      age,
    ],
  },
  {
    ...{ kind: 'VolumeSnapshotClass', shortNames: ['vsclass', 'vsclasses'], scope: 'Cluster', approval: 814, required: ['deletionPolicy', 'driver'] },
    fields: { deletionPolicy: policy, driver: text, parameters: { type: 'object', additionalProperties: text } },
    columns: [['Driver', '.driver'], ['DeletionPolicy', '.deletionPolicy'], age],
  },
]
