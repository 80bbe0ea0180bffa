/** What PersistentVolumes and Nodes are warned about. */
import type { Node, PersistentVolume } from '#api/gen/types/core.v1'
import { kindRules } from '#testing/kindRules'
import { node } from './node.ts'
import { persistentVolume } from './persistentVolume.ts'

const volume: PersistentVolume = {
  apiVersion: 'v1',
  kind: 'PersistentVolume',
  metadata: { name: 'v' },
  spec: { capacity: { storage: '1Gi' }, accessModes: ['ReadWriteOnce'], nfs: { server: 'a', path: '/' } },
  status: {},
}
const onVolume = kindRules('API-17', persistentVolume, volume)
onVolume.warnings('nothing', {}, [])
onVolume.warnings(
  'everything old',
  {
    'metadata.annotations': { 'volume.beta.kubernetes.io/mount-options': 'ro', 'volume.beta.kubernetes.io/storage-class': 'a' },
    'spec.persistentVolumeReclaimPolicy': 'Recycle',
    'spec.nodeAffinity.required.nodeSelectorTerms': [{ matchExpressions: [{ key: 'beta.kubernetes.io/os', operator: 'Exists' }] }],
    'spec.storageos': {},
  },
  [
    'metadata.annotations[volume.beta.kubernetes.io/storage-class]: deprecated since v1.8; use "storageClassName" attribute instead',
    'metadata.annotations[volume.beta.kubernetes.io/mount-options]: deprecated since v1.31; use "mountOptions" attribute instead',
    'spec.persistentVolumeReclaimPolicy: The Recycle reclaim policy is deprecated. Instead, the recommended approach is to use dynamic provisioning.',
    'spec.nodeAffinity.required.nodeSelectorTerms[0].matchExpressions[0].key: beta.kubernetes.io/os is deprecated since v1.14; use "kubernetes.io/os" instead',
    'spec.storageOS: deprecated in v1.22, non-functional in v1.25+',
  ],
)

const machine: Node = { apiVersion: 'v1', kind: 'Node', metadata: { name: 'n' }, spec: {}, status: {} }
const onMachine = kindRules('API-17', node, machine)
onMachine.warnings('nothing', {}, [])
onMachine.warnings('fields without a use', { 'spec.configSource': {}, 'spec.externalID': 'x' }, [
  'spec.configSource: the feature is removed',
  'spec.externalID: this field is deprecated, and is unused by Kubernetes',
])
