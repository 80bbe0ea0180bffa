import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { PersistentVolumeSpec } from '#api/gen/types/core.v1'
import { FieldPath } from '#api/machinery/fieldPath'
import { errorTexts } from '#testing/kindRules'
import { validateInlineVolumeSpec, validateVolumeSpec } from './validateVolumeSpec.ts'

const path = FieldPath.of('spec')
const common = { accessModes: ['ReadWriteOnce'], capacity: { storage: '1Gi' } }
const csi = { driver: 'csi.example.com', volumeHandle: 'h' }
const secret = { name: 's', namespace: 'n' }
const iqn = 'iqn.2001-04.com.example:disk'
const rows: [name: string, source: Partial<PersistentVolumeSpec>, want: string[]][] = [
  ['cinder', { cinder: { volumeID: 'v', secretRef: secret } }, []],
  ['cinder, a secret of no namespace', { cinder: { volumeID: 'v', secretRef: { name: 's' } } }, ['spec.cinder.secretRef.namespace: Required value']],
  [
    'storageos, a secret of no name',
    { storageos: { volumeName: 'v', secretRef: {} } },
    ['spec.storageos.secretRef.name: Required value', 'spec.storageos.secretRef.namespace: Required value'],
  ],
  ['azureFile', { azureFile: { secretName: 's', shareName: 's', secretNamespace: '' } }, ['spec.azureFile.secretNamespace: Required value']],
  [
    'glusterfs',
    { glusterfs: { endpoints: 'e', path: 'p', endpointsNamespace: '' } },
    ['spec.glusterfs.endpointsNamespace: Invalid value: "": if the endpointnamespace is set, it must be a valid namespace name'],
  ],
  ['iscsi', { iscsi: { targetPortal: 't', iqn, lun: 0, initiatorName: iqn } }, []],
  [
    'iscsi, wrong all over',
    { iscsi: { targetPortal: 't'.repeat(63), iqn: 'x', lun: 256, initiatorName: 'iqn', chapAuthSession: true, secretRef: {} } },
    [
      `spec.iscsi.targetportal: Invalid value: "${'t'.repeat(63)}": Total length of <volume name>:<iscsi.targetPortal> must be under 64 characters if iscsi.initiatorName is specified.`,
      'spec.iscsi.iqn: Invalid value: "x": must be valid format',
      'spec.iscsi.lun: Invalid value: 256: must be between 0 and 255, inclusive',
      'spec.iscsi.secretRef.name: Required value',
      'spec.iscsi.initiatorname: Invalid value: "iqn": must be valid format',
    ],
  ],
]
for (const [name, source, want] of rows)
  test(`API-17 volume: ${name}`, () => assert.deepEqual(errorTexts(validateVolumeSpec({ ...common, ...source }, 'v', path)), want))

const inline: [name: string, spec: PersistentVolumeSpec, want: string[]][] = [
  ['a good one', { accessModes: ['ReadWriteOnce'], csi, persistentVolumeReclaimPolicy: 'Retain', volumeMode: 'Filesystem' }, []],
  [
    'all that belongs to volumes',
    {
      ...{ ...common, claimRef: {}, hostPath: { path: '/x' }, nodeAffinity: {}, storageClassName: 'c' },
      ...{ persistentVolumeReclaimPolicy: 'Delete', volumeMode: 'Block' },
    },
    [
      'spec.claimRef: Forbidden: may not be specified in the context of inline volumes',
      'spec.capacity: Forbidden: may not be specified in the context of inline volumes',
      'spec.csi: Required value: has to be specified in the context of inline volumes',
      'spec.persistentVolumeReclaimPolicy: Forbidden: may only be Retain in the context of inline volumes',
      'spec.nodeAffinity: Forbidden: may not be specified in the context of inline volumes',
      'spec.storageClassName: Forbidden: may not be specified in the context of inline volumes',
      'spec.volumeMode: Forbidden: may not specify volumeMode other than Filesystem in the context of inline volumes',
    ],
  ],
]
for (const [name, spec, want] of inline) test(`API-17 inline volume: ${name}`, () => assert.deepEqual(errorTexts(validateInlineVolumeSpec(spec, path)), want))
