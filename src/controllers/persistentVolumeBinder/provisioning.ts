/**
 * Has a volume made for a claim (L3): tells the driver outside that it is its turn, or makes a directory itself where that is switched on.
 * Upstream: pkg/controller/volume/persistentvolume/pv_controller.go provisionClaim, pkg/volume/hostpath (v1.36).
 */
import type { PersistentVolume, PersistentVolumeClaim } from '#api/gen/types/core.v1'
import type { StorageClass } from '#api/gen/types/storage.v1'
import { storageClassOf, volumeAnnotations } from '#api/helpers/volumes'
import { type Frozen, keyOf } from '#api/machinery/meta'
import { isStatus } from '#api/machinery/status'
import { messageOf } from '#base/messageOf'
import type { NewObject } from '#client/client'
import { withDeletionFinalizer, withDriver } from '../shared/csiMigration.ts'
import type { BinderMetrics } from './binderMetrics.ts'
import type { Binding } from './binding.ts'
import type { HostPaths } from './options.ts'
import { hostPathPlugin, provisionerOf } from './volumePlugins.ts'

type Claim = Frozen<PersistentVolumeClaim>

export interface Provisioning extends Binding {
  readonly metrics: BinderMetrics
  readonly storageClass: (name: string) => Frozen<StorageClass> | undefined
  /** Absent: volumes of directories are not made here. */
  readonly makeHostPath: HostPaths['make'] | undefined
}

export async function provision(deps: Provisioning, claim: Claim, signal: AbortSignal): Promise<void> {
  const { events, metrics, storageClass } = deps
  const className = storageClassOf(claim)
  const chosen = storageClass(className)
  if (!chosen) return events.event(claim, 'Warning', 'ProvisioningFailed', `storageclass.storage.k8s.io "${className}" not found`)
  const provisioner = provisionerOf(chosen.provisioner)
  if (provisioner.kind === 'none') return events.event(claim, 'Warning', 'ProvisioningFailed', provisioner.problem)
  const key = keyOf(claim)
  const name = provisioner.kind === 'external' ? provisioner.name : hostPathPlugin
  metrics.begins(key, name, 'provision')
  try {
    const marked = await setProvisioner(deps, claim, name, signal)
    if (provisioner.kind === 'hostPath') return await provisionHostPath(deps, marked, chosen, signal)
    const message = `Waiting for a volume to be created either by the external provisioner '${name}' or manually by the system administrator. If volume creation is delayed, please verify that the provisioner is running and correctly registered.`
    events.event(marked, 'Normal', 'ExternalProvisioning', message)
  } catch (error) {
    metrics.failed(key)
    throw error
  }
}

/** Drivers begin when they find themselves named. */
async function setProvisioner({ claims, events }: Binding, claim: Claim, name: string, signal: AbortSignal): Promise<Claim> {
  const { annotations } = claim.metadata
  if (annotations?.[volumeAnnotations.storageProvisioner] === name) return claim
  const named = { ...annotations, [volumeAnnotations.betaStorageProvisioner]: name, [volumeAnnotations.storageProvisioner]: name }
  try {
    return await claims.update(withDriver({ ...claim, metadata: { ...claim.metadata, annotations: named } }, name), { signal })
  } catch (error) {
    if (!isStatus(error, 'Conflict')) events.event(claim, 'Warning', 'ProvisioningFailed', `Error saving claim: ${messageOf(error)}`)
    throw error
  }
}

const parentDirectory = '/tmp/hostpath_pv/'

async function provisionHostPath(
  deps: Provisioning,
  claim: Claim,
  { metadata, mountOptions = [], reclaimPolicy = 'Delete' }: Frozen<StorageClass>,
  signal: AbortSignal,
) {
  const { events, volumes, makeHostPath } = deps
  const fail = (message: string) => {
    events.event(claim, 'Warning', 'ProvisioningFailed', message)
    throw new Error(message)
  }
  if (claim.spec.dataSource) fail(`plugin "${hostPathPlugin}" is not a CSI plugin. Only CSI plugin can provision a claim with a datasource`)
  if (mountOptions.length > 0)
    fail(`Mount options are not supported by the provisioner but StorageClass "${metadata.name}" has mount options [${mountOptions.join(' ')}]`)
  if (!makeHostPath) return fail(`Failed to create provisioner: provisioning in volume plugin "${hostPathPlugin}" is disabled`)
  const name = `pvc-${claim.metadata.uid}`
  const path = `${parentDirectory}${claim.metadata.uid}`
  try {
    await makeHostPath(path)
  } catch (error) {
    fail(`Failed to provision volume with StorageClass "${metadata.name}": ${messageOf(error)}`)
  }
  const volume = hostPathVolume(claim, name, path, reclaimPolicy)
  await volumes.create(withDeletionFinalizer(volume as Frozen<PersistentVolume>) as NewObject<PersistentVolume>, { signal }).catch((error: unknown) => {
    // Made by a former life.
    if (!isStatus(error, 'AlreadyExists')) throw error
  })
  events.event(claim, 'Normal', 'ProvisioningSucceeded', `Successfully provisioned volume ${name} using ${hostPathPlugin}`)
}

function hostPathVolume(claim: Claim, name: string, path: string, reclaimPolicy: string): NewObject<PersistentVolume> {
  const { namespace, uid, resourceVersion } = claim.metadata
  const annotations = {
    'kubernetes.io/createdby': 'hostpath-dynamic-provisioner',
    [volumeAnnotations.boundByController]: 'yes',
    [volumeAnnotations.provisionedBy]: hostPathPlugin,
  }
  return {
    apiVersion: 'v1',
    kind: 'PersistentVolume',
    metadata: { name, annotations },
    spec: {
      persistentVolumeReclaimPolicy: reclaimPolicy,
      accessModes: [...(claim.spec.accessModes ?? ['ReadWriteOnce'])],
      capacity: { storage: claim.spec.resources?.requests?.storage ?? '0' },
      hostPath: { path },
      storageClassName: storageClassOf(claim),
      claimRef: { apiVersion: 'v1', kind: 'PersistentVolumeClaim', namespace, name: claim.metadata.name, uid, resourceVersion },
    },
  }
}
