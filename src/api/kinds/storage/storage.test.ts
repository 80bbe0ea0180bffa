import type { CSIDriver, CSINode, CSIStorageCapacity, StorageClass, VolumeAttachment, VolumeAttributesClass } from '#api/gen/types/storage.v1'
import { kindRules } from '#testing/kindRules'
import { csiDriver } from './csiDriver.ts'
import { csiNode } from './csiNode.ts'
import { csiStorageCapacity } from './csiStorageCapacity.ts'
import { storageClass } from './storageClass.ts'
import { volumeAttachment } from './volumeAttachment.ts'
import { volumeAttributesClass } from './volumeAttributesClass.ts'

const apiVersion = 'storage.k8s.io/v1'
const subdomain =
  "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"

const goodClass: StorageClass = { apiVersion, kind: 'StorageClass', metadata: { name: 'fast' }, provisioner: 'csi.example.com' }
const onClass = kindRules('EXP-04', storageClass, goodClass)
onClass.defaults('delete, immediately', {}, { reclaimPolicy: 'Delete', volumeBindingMode: 'Immediate' })
onClass.create([
  ['a good one', {}, []],
  ['no provisioner', { provisioner: '' }, ['provisioner: Required value']],
  ['a recycling one', { reclaimPolicy: 'Recycle' }, ['reclaimPolicy: Unsupported value: "Recycle": supported values: "Delete", "Retain"']],
  ['an unknown mode', { volumeBindingMode: 'Later' }, ['volumeBindingMode: Unsupported value: "Later": supported values: "Immediate", "WaitForFirstConsumer"']],
  ['an empty parameter', { parameters: { '': 'x' } }, ['parameters: Invalid value: "": field can not be empty.']],
  [
    'too many parameters',
    { parameters: Object.fromEntries(Array.from({ length: 513 }, (_, i) => [`k${i}`, ''])) },
    ['parameters: Too long: may not be more than 512 bytes'],
  ],
  ['too long parameters', { parameters: { a: 'x'.repeat(256 * 1024) } }, ['parameters: Too long: may not be more than 262144 bytes']],
  [
    'a topology without values',
    { allowedTopologies: [{ matchLabelExpressions: [{ key: 'zone', values: [] }] }] },
    ['allowedTopologies[0].matchLabelExpressions[0].values: Required value'],
  ],
  [
    'a topology twice',
    { allowedTopologies: [{ matchLabelExpressions: [{ key: 'zone', values: ['a'] }] }, { matchLabelExpressions: [{ key: 'zone', values: ['a'] }] }] },
    ['allowedTopologies[1].matchLabelExpressions: Duplicate value: ""'],
  ],
  [
    'a key twice',
    {
      allowedTopologies: [
        {
          matchLabelExpressions: [
            { key: 'zone', values: ['a', 'a'] },
            { key: 'zone', values: ['b'] },
          ],
        },
      ],
    },
    [
      'allowedTopologies[0].matchLabelExpressions[0].values[1]: Duplicate value: "a"',
      'allowedTopologies[0].matchLabelExpressions[1].key: Duplicate value: "zone"',
    ],
  ],
])
onClass.update([
  ['expansion may change', { allowVolumeExpansion: true }, []],
  ['the provisioner', { provisioner: 'other.example.com' }, ['provisioner: Invalid value: "other.example.com": field is immutable']],
  ['the parameters', { parameters: { a: 'b' } }, ['parameters: Invalid value: {"a":"b"}: field is immutable']],
  ['the policy', { reclaimPolicy: 'Retain' }, ['reclaimPolicy: Invalid value: "Retain": field is immutable']],
  ['the mode', { volumeBindingMode: 'WaitForFirstConsumer' }, ['volumeBindingMode: Invalid value: "WaitForFirstConsumer": field is immutable']],
])
onClass.cells(
  'the default class',
  { 'metadata.annotations': { 'storageclass.kubernetes.io/is-default-class': 'true' } },
  {
    Name: 'fast (default)',
    Provisioner: 'csi.example.com',
    ReclaimPolicy: 'Delete',
    VolumeBindingMode: 'Immediate',
    AllowVolumeExpansion: false,
  },
)

const goodAttributes: VolumeAttributesClass = {
  apiVersion,
  kind: 'VolumeAttributesClass',
  metadata: { name: 'gold' },
  driverName: 'csi.example.com',
  parameters: { iops: '100' },
}
const onAttributes = kindRules('EXP-04', volumeAttributesClass, goodAttributes)
onAttributes.create([
  ['a good one', {}, []],
  ['no driver', { driverName: '' }, ['driverName: Required value']],
  ['no parameters', { parameters: {} }, ['parameters: Required value: must contain at least one key/value pair']],
])
onAttributes.update([
  ['the driver', { driverName: 'other.example.com' }, ['driverName: Forbidden: updates to driverName are forbidden.']],
  ['the parameters', { 'parameters.iops': '200' }, ['parameters: Forbidden: updates to parameters are forbidden.']],
])

const goodDriver: CSIDriver = { apiVersion, kind: 'CSIDriver', metadata: { name: 'csi.example.com' }, spec: {} }
const onDriver = kindRules('EXP-04', csiDriver, goodDriver)
onDriver.defaults(
  'an empty spec',
  {},
  {
    spec: {
      attachRequired: true,
      podInfoOnMount: false,
      storageCapacity: false,
      requiresRepublish: false,
      seLinuxMount: false,
      fsGroupPolicy: 'ReadWriteOnceWithFSType',
      volumeLifecycleModes: ['Persistent'],
    },
  },
)
onDriver.create([
  ['a good one', {}, []],
  [
    'an unknown group policy',
    { 'spec.fsGroupPolicy': 'Always' },
    ['spec.fsGroupPolicy: Unsupported value: "Always": supported values: "File", "None", "ReadWriteOnceWithFSType"'],
  ],
  [
    'an unknown mode',
    { 'spec.volumeLifecycleModes': ['Forever'] },
    ['spec.volumeLifecycleModes: Unsupported value: "Forever": supported values: "Persistent", "Ephemeral"'],
  ],
  ['an audience twice', { 'spec.tokenRequests': [{ audience: 'a' }, { audience: 'a' }] }, ['spec.tokenRequests[1].audience: Duplicate value: "a"']],
  [
    'a short token',
    { 'spec.tokenRequests': [{ audience: '', expirationSeconds: 60 }] },
    ['spec.tokenRequests[0].expirationSeconds: Invalid value: 60: may not specify a duration less than 10 minutes'],
  ],
  [
    'a token without an expiry',
    { 'spec.tokenRequests': [{ audience: '', expirationSeconds: 2 ** 33 }] },
    ['spec.tokenRequests[0].expirationSeconds: Invalid value: 8589934592: may not specify a duration larger than 2^32 seconds'],
  ],
  [
    'a short period',
    { 'spec.nodeAllocatableUpdatePeriodSeconds': 9 },
    ['spec.nodeAllocatableUpdatePeriodSeconds: Invalid value: 9: must be greater than or equal to 10 seconds'],
  ],
  [
    'tokens in secrets without tokens',
    { 'spec.serviceAccountTokenInSecrets': true },
    ['spec.serviceAccountTokenInSecrets: Invalid value: true: serviceAccountTokenInSecrets is set but no tokenRequests are specified'],
  ],
  [
    'a field whose gate is off',
    { 'spec.preventPodSchedulingIfMissing': true },
    ['spec.preventPodSchedulingIfMissing: Forbidden: preventPodSchedulingIfMissing requires the VolumeLimitScaling feature gate to be enabled'],
  ],
])
onDriver.update([
  ['pod info may change', { 'spec.podInfoOnMount': true }, []],
  ['attaching', { 'spec.attachRequired': false }, ['spec.attachedRequired: Invalid value: false: field is immutable']],
  ['modes', { 'spec.volumeLifecycleModes': ['Ephemeral'] }, ['spec.volumeLifecycleModes: Invalid value: ["Ephemeral"]: field is immutable']],
])

const goodNode: CSINode = {
  apiVersion,
  kind: 'CSINode',
  metadata: { name: 'n' },
  spec: { drivers: [{ name: 'csi.example.com', nodeID: 'n', topologyKeys: ['a/b'] }] },
}
const onNode = kindRules('EXP-04', csiNode, goodNode)
onNode.create([
  ['a good one', {}, []],
  ['no name', { 'spec.drivers.0.name': '' }, ['spec.drivers[0].name: Required value']],
  ['a long name', { 'spec.drivers.0.name': 'a'.repeat(64) }, ['spec.drivers[0].name: Too long: may not be more than 63 bytes']],
  ['no ID', { 'spec.drivers.0.nodeID': '' }, ['spec.drivers[0].nodeID: Required value']],
  ['a long ID', { 'spec.drivers.0.nodeID': 'x'.repeat(257) }, [`spec.drivers[0].nodeID: Invalid value: "${'x'.repeat(257)}": must be 256 characters or less`]],
  [
    'fewer than no volumes',
    { 'spec.drivers.0.allocatable': { count: -1 } },
    ['spec.drivers[0].allocatable.count: Invalid value: -1: must be greater than or equal to 0'],
  ],
  ['a key twice', { 'spec.drivers.0.topologyKeys': ['a', 'a'] }, ['spec.drivers[0]: Duplicate value: "a"']],
  ['a driver twice', { 'spec.drivers.1': { name: 'csi.example.com', nodeID: 'n' } }, ['spec.drivers[1].name: Duplicate value: "csi.example.com"']],
])
onNode.update([
  ['the number of volumes may change', { 'spec.drivers.0.allocatable': { count: 5 } }, []],
  [
    'the ID',
    { 'spec.drivers.0.nodeID': 'm' },
    ['spec.drivers: Invalid value: {"name":"csi.example.com","nodeID":"m","topologyKeys":["a/b"]}: field is immutable'],
  ],
])

const goodCapacity: CSIStorageCapacity = {
  apiVersion,
  kind: 'CSIStorageCapacity',
  metadata: { name: 'c', namespace: 'd' },
  storageClassName: 'fast',
  capacity: '1Gi',
}
const onCapacity = kindRules('EXP-04', csiStorageCapacity, goodCapacity)
onCapacity.create([
  ['a good one', {}, []],
  ['a bad class', { storageClassName: 'A' }, [`storageClassName: Invalid value: "A": ${subdomain}`]],
  ['less than nothing', { capacity: '-1' }, ['capacity: Invalid value: "-1": must be greater than or equal to 0']],
])
onCapacity.update([
  ['the capacity may change', { capacity: '2Gi' }, []],
  ['the class', { storageClassName: 'slow' }, ['storageClassName: Invalid value: "slow": field is immutable']],
  ['the topology', { nodeTopology: { matchLabels: { a: 'b' } } }, ['nodeTopology: Invalid value: {"matchLabels":{"a":"b"}}: field is immutable']],
])

const goodAttachment: VolumeAttachment = {
  apiVersion,
  kind: 'VolumeAttachment',
  metadata: { name: 'v' },
  spec: { attacher: 'csi.example.com', nodeName: 'n', source: { persistentVolumeName: 'pv' } },
  status: { attached: false },
}
const onAttachment = kindRules('EXP-04', volumeAttachment, goodAttachment)
onAttachment.create([
  ['a good one', {}, []],
  ['no attacher', { 'spec.attacher': '' }, ['spec.attacher: Required value']],
  ['no source', { 'spec.source': {} }, ['spec.source: Required value: must specify exactly one of inlineVolumeSpec and persistentVolumeName']],
  ['two sources', { 'spec.source.inlineVolumeSpec': {} }, ['spec.source: Forbidden: must specify exactly one of inlineVolumeSpec and persistentVolumeName']],
  [
    'a source that is none',
    { 'spec.source': { inlineVolumeSpec: { accessModes: ['ReadWriteOnce'] } } },
    [
      'spec.source.inlineVolumeSpec.csi: Required value: has to be specified in the context of inline volumes',
      'spec.source.inlineVolumeSpec: Required value: must specify a volume type',
    ],
  ],
  ['no node', { 'spec.nodeName': '' }, [`spec.nodeName: Invalid value: "": ${subdomain}`]],
])
onAttachment.update([
  [
    'another node',
    { 'spec.nodeName': 'm' },
    ['spec: Invalid value: {"attacher":"csi.example.com","nodeName":"m","source":{"persistentVolumeName":"pv"}}: field is immutable'],
  ],
])
onAttachment.subresource('status', [
  ['attached', { 'status.attached': true }, []],
  [
    'a negative code',
    { 'status.attachError': { errorCode: -1 } },
    ['status.attachError.errorCode: Invalid value: -1: must be between 0 and 2147483647, inclusive'],
  ],
  ['a long message', { 'status.detachError': { message: 'x'.repeat(1025) } }, ['status.detachError.message: Too long: may not be more than 262144 bytes']],
])

onClass.warnings('an old label', { allowedTopologies: [{ matchLabelExpressions: [{ key: 'failure-domain.beta.kubernetes.io/zone', values: ['a'] }] }] }, [
  'allowedTopologies[0].matchLabelExpressions[0].key: deprecated since v1.17; use "topology.kubernetes.io/zone" instead',
])
onCapacity.warnings(
  'old labels',
  { nodeTopology: { matchLabels: { 'beta.kubernetes.io/arch': 'arm64' }, matchExpressions: [{ key: 'beta.kubernetes.io/os', operator: 'Exists' }] } },
  [
    'nodeTopology.matchExpressions[0].key: beta.kubernetes.io/os is deprecated since v1.14; use "kubernetes.io/os" instead',
    'nodeTopology.matchLabels.beta.kubernetes.io/arch: deprecated since v1.14; use "kubernetes.io/arch" instead',
  ],
)
