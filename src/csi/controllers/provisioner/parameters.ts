/** What the parameters of a StorageClass say to the provisioner and to the driver (L3, pure). Upstream: external-provisioner, controller.go. */
import { ownValue } from '#base/bareMap'
import type { TextMap } from '../../server/csiTypes.ts'
import type { SecretKeys } from '../secrets.ts'

export const reservedPrefix = 'csi.storage.k8s.io/'
const fsTypeKey = `${reservedPrefix}fstype`

const keysOf = (name: string, part: string): SecretKeys => ({
  name,
  secretName: `${reservedPrefix}${part}secret-name`,
  secretNamespace: `${reservedPrefix}${part}secret-namespace`,
})
const withOld = (keys: SecretKeys): SecretKeys => ({
  ...keys,
  old: { secretName: `csi${keys.name}SecretName`, secretNamespace: `csi${keys.name}SecretNamespace` },
})

export const secretKeys = {
  default: keysOf('Default', ''),
  provisioner: withOld(keysOf('Provisioner', 'provisioner-')),
  controllerPublish: withOld(keysOf('ControllerPublish', 'controller-publish-')),
  nodeStage: withOld(keysOf('NodeStage', 'node-stage-')),
  nodePublish: withOld(keysOf('NodePublish', 'node-publish-')),
  controllerExpand: keysOf('ControllerExpand', 'controller-expand-'),
  nodeExpand: keysOf('NodeExpand', 'node-expand-'),
  controllerModify: keysOf('ControllerModify', 'controller-modify-'),
} as const

const reserved = new Set([fsTypeKey, ...Object.values(secretKeys).flatMap(({ secretName, secretNamespace }) => [secretName, secretNamespace])])

/** What the driver gets. @throws Error for a reserved key that is unknown */
export function driverParameters(parameters: TextMap): TextMap {
  const kept = Object.entries(parameters).filter(([key]) => !key.startsWith(reservedPrefix))
  const unknown = Object.keys(parameters).find((key) => key.startsWith(reservedPrefix) && !reserved.has(key))
  if (unknown === undefined) return Object.fromEntries(kept)
  const problem = `found unknown parameter key "${unknown}" with reserved namespace ${reservedPrefix}`
  throw new Error(`failed to strip CSI Parameters of prefixed keys: ${problem}`)
}

/** '': the driver chooses. @throws Error when both keys are given */
export function fsTypeOf(parameters: TextMap, otherwise: string): string {
  const given = Object.keys(parameters).filter((key) => key.toLowerCase() === 'fstype' || key === fsTypeKey)
  if (given.length > 1) throw new Error(`fstype specified in parameters with both "fstype" and "${fsTypeKey}" keys`)
  return ownValue(parameters, given[0] ?? '') || otherwise
}

export interface NamedObject {
  readonly namespace?: string | undefined
  readonly name?: string | undefined
}

/** Parameters about the claim, for drivers that ask for them (--extra-create-metadata). */
export function claimParameters({ namespace = '', name = '' }: NamedObject, volumeName: string): TextMap {
  return { [`${reservedPrefix}pvc/name`]: name, [`${reservedPrefix}pvc/namespace`]: namespace, [`${reservedPrefix}pv/name`]: volumeName }
}
