/** Why a claim has no volume (L2): its class, its driver, its first consumer, the volumes that do not fit, what provisioning reports. */
import type { PersistentVolume, PersistentVolumeClaim, Pod } from '#api/gen/types/core.v1'
import type { StorageClass } from '#api/gen/types/storage.v1'
import { podClaimNames } from '#api/helpers/objectReferences'
import { isPodTerminal } from '#api/helpers/pods'
import {
  defaultStorageClassOf,
  hasModes,
  isBoundToClaim,
  isSameMode,
  namesStorageClass,
  noProvisioner,
  storageClassOf,
  volumeAnnotations,
} from '#api/helpers/volumes'
import { selectorOf } from '#api/machinery/labelSelector'
import type { Frozen } from '#api/machinery/meta'
import { compareQuantities } from '#api/machinery/quantity'
import { type Cause, conditionText, type Explanation, kubectl, skiffWhy } from './answer.ts'
import { eventText, type View } from './view.ts'

type Claim = Frozen<PersistentVolumeClaim>
type Volume = Frozen<PersistentVolume>

/** `isConsumerAwaited`: the claim waits for a pod, and is no reason for that pod to wait. */
export type ClaimCause = Cause & { readonly isConsumerAwaited?: boolean }

export async function explainClaim(claim: Claim, view: View): Promise<Explanation> {
  const { phase = 'Pending' } = claim.status ?? {}
  const volume = claim.spec.volumeName ? `, volume ${claim.spec.volumeName}` : ''
  const causes = await claimCauses(claim, view)
  return { state: `its phase is ${phase}${volume}`, causes, isSettled: phase === 'Bound' && causes.length === 0 }
}

/** What keeps the claim from having its volume, also for the pods that use it. */
export async function claimCauses(claim: Claim, view: View): Promise<readonly ClaimCause[]> {
  const { phase } = claim.status ?? {}
  const { volumeName = '' } = claim.spec
  if (phase === 'Bound') return resizeCauses(claim, view)
  if (phase === 'Lost')
    return [
      {
        text: `its volume ${volumeName} does not exist any more, or belongs to another claim; its data cannot be reached through this claim`,
        evidence: `status.phase Lost, spec.volumeName ${volumeName}`,
        next: kubectl(undefined, 'get', 'persistentvolume', volumeName),
      },
    ]
  if (volumeName !== '') return requestedVolumeCauses(claim, volumeName, view)
  const className = storageClassOf(claim)
  return className === '' ? classlessCauses(claim, view) : classCauses(claim, className, view)
}

async function resizeCauses(claim: Claim, view: View): Promise<readonly ClaimCause[]> {
  const condition = (claim.status?.conditions ?? []).find(({ status, type }) => status === 'True' && /Resiz|ModifyVolume|ModifyingVolume/.test(type))
  if (!condition) return []
  const event = await view.warningOf(claim, 'VolumeResizeFailed', 'FileSystemResizeFailed', 'VolumeModifyFailed')
  const { namespace, name = '' } = claim.metadata
  const text =
    condition.type === 'FileSystemResizePending'
      ? 'its volume has grown; the file system grows when a pod on a node uses the claim'
      : `its volume is being changed${event ? `: ${event.message}` : ''}`
  return [{ text, evidence: event ? eventText(event) : conditionText(condition), next: kubectl(namespace, 'describe', 'pvc', name) }]
}

async function requestedVolumeCauses(claim: Claim, volumeName: string, view: View): Promise<readonly ClaimCause[]> {
  const { object: volume, isAbsent } = await view.get<PersistentVolume>('persistentvolumes', undefined, volumeName)
  const evidence = `spec.volumeName ${volumeName}`
  if (isAbsent) return [{ text: `it asks for the volume ${volumeName}, which does not exist`, evidence, next: kubectl(undefined, 'get', 'persistentvolumes') }]
  const misfit = volume && misfitOf(volume, claim)
  if (!misfit) return []
  return [
    {
      text: `it asks for the volume ${volumeName}, which does not fit: ${misfit}`,
      evidence,
      next: kubectl(undefined, 'describe', 'persistentvolume', volumeName),
    },
  ]
}

async function classlessCauses(claim: Claim, view: View): Promise<readonly ClaimCause[]> {
  const classes = namesStorageClass(claim) ? undefined : await view.list<StorageClass>('storageclasses', undefined)
  const fit = await staticCause(claim, '', view)
  if (!classes) return [fit]
  const known = defaultStorageClassOf(classes)
  if (known) return []
  const names = classes.map(({ metadata }) => metadata.name).join(', ')
  const text = `it names no StorageClass, and ${names === '' ? 'there is none' : `none of these is the default: ${names}`}; ${fit.text}`
  return [{ text, evidence: 'spec.storageClassName is absent', next: kubectl(undefined, 'get', 'storageclasses') }]
}

async function classCauses(claim: Claim, className: string, view: View): Promise<readonly ClaimCause[]> {
  const { object: storageClass, isAbsent } = await view.get<StorageClass>('storageclasses', undefined, className)
  if (isAbsent) {
    const text = `its StorageClass ${className} does not exist`
    return [{ text, evidence: `spec.storageClassName ${className}`, next: kubectl(undefined, 'get', 'storageclasses') }]
  }
  const failure = await view.warningOf(claim, 'ProvisioningFailed')
  if (storageClass?.volumeBindingMode === 'WaitForFirstConsumer' && claim.metadata.annotations?.[volumeAnnotations.selectedNode] === undefined)
    return consumerCauses(claim, className, view)
  if (storageClass?.provisioner === noProvisioner) return [await staticCause(claim, className, view)]
  if (failure) {
    const { namespace, name = '' } = claim.metadata
    return [{ text: `its provisioner fails: ${failure.message}`, evidence: `event ${failure.reason}`, next: kubectl(namespace, 'describe', 'pvc', name) }]
  }
  return storageClass ? [await driverCause(storageClass, view)] : []
}

async function consumerCauses(claim: Claim, className: string, view: View): Promise<readonly ClaimCause[]> {
  const { namespace, name = '' } = claim.metadata
  const pods = await view.list<Pod>('pods', namespace)
  const evidence = `StorageClass ${className}: volumeBindingMode WaitForFirstConsumer`
  const user = pods?.find((pod) => !isPodTerminal(pod) && podClaimNames(pod).includes(name))
  if (pods && !user)
    return [{ text: 'it waits for its first consumer: no pod uses it', evidence, next: kubectl(namespace, 'describe', 'pvc', name), isConsumerAwaited: true }]
  return user
    ? [
        {
          text: `it waits until its pod ${user.metadata.name} has a node`,
          evidence,
          next: skiffWhy('pod', user.metadata.name ?? '', namespace),
          isConsumerAwaited: true,
        },
      ]
    : []
}

async function driverCause({ provisioner = '', metadata: { name = '' } }: Frozen<StorageClass>, view: View): Promise<ClaimCause> {
  const driver = await view.get('csidrivers', undefined, provisioner)
  return {
    text: `the provisioner ${provisioner} has made no volume yet${driver.isAbsent ? '; no CSI driver of this name is installed' : ': check that it runs'}`,
    evidence: `StorageClass ${name}: provisioner ${provisioner}`,
    next: kubectl(undefined, 'get', 'csidrivers'),
  }
}

const shownMisfits = 3

/** Why none of the volumes that exist fits. */
async function staticCause(claim: Claim, className: string, view: View): Promise<ClaimCause> {
  const next = kubectl(undefined, 'get', 'persistentvolumes')
  const evidence = className === '' ? 'spec.storageClassName is empty or absent' : `StorageClass ${className}: provisioner ${noProvisioner}`
  const all = await view.list<PersistentVolume>('persistentvolumes', undefined)
  if (!all) return { text: 'it needs a PersistentVolume that fits, and you may not list them', evidence, next }
  const volumes = all.filter((volume) => storageClassOf(volume) === className)
  const misfits = volumes.flatMap((volume) => {
    const misfit = misfitOf(volume, claim)
    return misfit === undefined ? [] : [`${volume.metadata.name} ${misfit}`]
  })
  const of = className === '' ? 'without a class' : `of class ${className}`
  const more = misfits.length > shownMisfits ? `, and ${misfits.length - shownMisfits} more` : ''
  const text =
    misfits.length === 0 ? `there is no PersistentVolume ${of}` : `no PersistentVolume ${of} fits: ${misfits.slice(0, shownMisfits).join(', ')}${more}`
  return { text, evidence, next }
}

/** Undefined: it fits. */
function misfitOf(volume: Volume, claim: Claim): string | undefined {
  const { claimRef, capacity, accessModes = [] } = volume.spec
  const { resources, selector, accessModes: wantedModes = [], volumeMode = 'Filesystem' } = claim.spec
  const wanted = resources?.requests?.storage ?? '0'
  if (claimRef && !isBoundToClaim(volume, claim)) return `belongs to the claim ${claimRef.namespace}/${claimRef.name}`
  if (!isSameMode(volume, claim)) return `has volumeMode ${volume.spec.volumeMode ?? 'Filesystem'}, and not ${volumeMode}`
  if (storageClassOf(volume) !== storageClassOf(claim)) return `has the class "${storageClassOf(volume)}", and the claim "${storageClassOf(claim)}"`
  if (!hasModes(volume, claim)) return `has the access modes ${accessModes.join(', ')}, and not ${wantedModes.join(', ')}`
  if (selector && !selectorOf(selector).matches(volume.metadata.labels)) return 'lacks the labels that the claim selects'
  if (compareQuantities(capacity?.storage ?? '0', wanted) < 0) return `is smaller (${capacity?.storage}) than ${wanted}`
  if (volume.status?.phase === 'Failed' || volume.status?.phase === 'Pending') return `is in phase ${volume.status.phase}`
  return undefined
}
