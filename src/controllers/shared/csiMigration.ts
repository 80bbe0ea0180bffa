/**
 * Volumes of in-tree plugins that CSI drivers have taken over (L3, pure): the driver, and the annotations of claims and volumes.
 * Upstream: csi-translation-lib/plugins, pkg/volume/csimigration/plugin_manager.go, persistentvolume/pv_controller_base.go (v1.36).
 */
import type { PersistentVolume, PersistentVolumeClaim } from '#api/gen/types/core.v1'
import { volumeAnnotations } from '#api/helpers/volumes'
import type { Frozen } from '#api/machinery/meta'

type Source = keyof Frozen<PersistentVolume>['spec']

interface Migrated {
  readonly driver: string
  readonly source: Source
}

const migrated: ReadonlyMap<string, Migrated> = new Map([
  ['kubernetes.io/aws-ebs', { driver: 'ebs.csi.aws.com', source: 'awsElasticBlockStore' }],
  ['kubernetes.io/azure-disk', { driver: 'disk.csi.azure.com', source: 'azureDisk' }],
  ['kubernetes.io/azure-file', { driver: 'file.csi.azure.com', source: 'azureFile' }],
  ['kubernetes.io/cinder', { driver: 'cinder.csi.openstack.org', source: 'cinder' }],
  ['kubernetes.io/gce-pd', { driver: 'pd.csi.storage.gke.io', source: 'gcePersistentDisk' }],
  ['kubernetes.io/portworx-volume', { driver: 'pxd.portworx.com', source: 'portworxVolume' }],
  ['kubernetes.io/vsphere-volume', { driver: 'csi.vsphere.vmware.com', source: 'vsphereVolume' }],
])

/** The CSI driver that has taken over from an in-tree plugin; undefined: none has. */
export function driverInsteadOf(plugin: string): string | undefined {
  return migrated.get(plugin)?.driver
}

/** The in-tree plugin of a volume that a CSI driver looks after now. */
export function migratedPluginOf({ spec }: Frozen<PersistentVolume>): string | undefined {
  for (const [plugin, { source }] of migrated) if (spec[source] !== undefined) return plugin
  return undefined
}

/** The object with the driver in its annotations that has taken over from `provisioner`; the same object when it says so already. */
export function withDriver<T extends Frozen<PersistentVolume | PersistentVolumeClaim>>(object: T, provisioner: string | undefined): T {
  if (provisioner === undefined) return object
  const { [volumeAnnotations.migratedTo]: said, ...others } = object.metadata.annotations ?? {}
  const driver = driverInsteadOf(provisioner)
  if (driver === said || (driver === undefined && said === '')) return object
  const annotations = driver === undefined ? others : { ...others, [volumeAnnotations.migratedTo]: driver }
  return { ...object, metadata: { ...object.metadata, annotations } }
}

const inTreeFinalizer = 'kubernetes.io/pv-controller'
const externalFinalizer = 'external-provisioner.volume.kubernetes.io/finalizer'

/**
 * The volume with the finalizer that keeps it until what an in-tree plugin has made is deleted; the same object when nothing changes.
 * Drivers' volumes have a finalizer of their own.
 */
export function withDeletionFinalizer(volume: Frozen<PersistentVolume>): Frozen<PersistentVolume> {
  const provisioner = volume.metadata.annotations?.[volumeAnnotations.provisionedBy]
  if (provisioner === undefined) return volume
  const has = volume.metadata.finalizers ?? []
  const isMigrated = driverInsteadOf(provisioner) !== undefined
  if (!isMigrated && !provisioner.startsWith('kubernetes.io/')) return volume
  const mustStay = !isMigrated && volume.spec.persistentVolumeReclaimPolicy === 'Delete'
  const kept = has.filter((one) => (one !== inTreeFinalizer || mustStay) && (one !== externalFinalizer || isMigrated))
  const finalizers = mustStay && !kept.includes(inTreeFinalizer) ? [...kept, inTreeFinalizer] : kept
  if (finalizers.length === has.length && finalizers.every((one, index) => one === has[index])) return volume
  return { ...volume, metadata: { ...volume.metadata, finalizers } }
}

export function withoutDeletionFinalizer(volume: Frozen<PersistentVolume>): Frozen<PersistentVolume> {
  const finalizers = (volume.metadata.finalizers ?? []).filter((one) => one !== inTreeFinalizer)
  return finalizers.length === (volume.metadata.finalizers ?? []).length ? volume : { ...volume, metadata: { ...volume.metadata, finalizers } }
}
