/**
 * Tells pods what becomes of their volumes (L3): attached, refused by the driver, late, or in use on another node.
 * Upstream: reconciler.go reportMultiAttachError, operation_generator.go GenerateAttachVolumeFunc, csi_attacher.go waitForVolumeAttachment (v1.36).
 */
import type { PersistentVolume, Pod } from '#api/gen/types/core.v1'
import type { VolumeAttachment } from '#api/gen/types/storage.v1'
import type { Frozen } from '#api/machinery/meta'
import { least } from '#base/extremes'
import { parseTime } from '#base/time'
import type { EventRecorder } from '#client/eventRecorder'
import type { Wanted } from './attachable.ts'

type Attachment = Frozen<VolumeAttachment>
type Volume = Frozen<PersistentVolume>

export interface Reports {
  /** The driver has said something new. */
  changed(old: Attachment, now: Attachment, volume: Volume | undefined): void
  /** A volume for which nothing is attached outside of the node is in the node's status now. */
  reported(wanted: Wanted | undefined): void
  /** Once for as long as it lasts. */
  taken(nodeName: string, name: string, wanted: Wanted | undefined, holders: readonly string[]): void
  /** @returns in how many milliseconds the next attachment may be late; undefined: none is awaited */
  late(nodeName: string, wanted: ReadonlyMap<string, Wanted>, attachments: ReadonlyMap<string, Attachment | undefined>, nowMs: number): number | undefined
  /** Forgets volumes that are no longer both wanted here and attached elsewhere, so that they can be reported again. */
  keep(nodeName: string, wanted: ReadonlyMap<string, Wanted>, taken: readonly string[]): void
}

const patienceMs = 2 * 60_000
const failed = 'FailedAttachVolume'

export function createReports(events: EventRecorder, podsOf: (volume: Volume) => readonly Frozen<Pod>[]): Reports {
  const reported = new Map<string, Set<string>>()
  /** When a late attachment was last reported, by its uid. */
  const lateSince = new Map<string, Map<string, number>>()
  const succeeded = ({ metadata }: Volume, pods: readonly Frozen<Pod>[]) => {
    // Upstream's text ends in a space, and tools match on it.
    for (const pod of pods) events.event(pod, 'Normal', 'SuccessfulAttachVolume', `AttachVolume.Attach succeeded for volume "${metadata.name}" `)
  }

  return {
    changed(old, now, volume) {
      if (!volume) return
      const there = podsOf(volume).filter(({ spec }) => spec.nodeName === now.spec.nodeName)
      const { attached, attachError } = now.status ?? {}
      const name = volume.metadata.name
      if (attached && !old.status?.attached) succeeded(volume, there)
      if (attached || !attachError || attachError.time === old.status?.attachError?.time) return
      for (const pod of there) events.event(pod, 'Warning', failed, `AttachVolume.Attach failed for volume "${name}" : ${attachError.message ?? ''}`)
    },
    reported(wanted) {
      if (wanted) succeeded(wanted.volume, wanted.pods)
    },
    taken(nodeName, name, wanted, holders) {
      const known = reported.get(nodeName) ?? new Set<string>()
      if (!wanted || known.has(name)) return
      reported.set(nodeName, known.add(name))
      const users = podsOf(wanted.volume).filter(({ spec }) => holders.includes(spec.nodeName ?? ''))
      for (const pod of wanted.pods)
        events.event(pod, 'Warning', failed, `Multi-Attach error for volume "${wanted.volume.metadata.name}" ${holdersText(pod, users)}`)
    },
    late(nodeName, wanted, attachments, nowMs) {
      const before = lateSince.get(nodeName)
      const since = new Map<string, number>()
      for (const [name, { volume, pods }] of wanted) {
        const one = attachments.get(name)
        if (!one || one.status?.attached) continue
        const uid = one.metadata.uid ?? ''
        const start = before?.get(uid) ?? parseTime(one.metadata.creationTimestamp ?? '') ?? nowMs
        const isLate = nowMs - start >= patienceMs
        since.set(uid, isLate ? nowMs : start)
        if (!isLate) continue
        const message = `timed out waiting for external-attacher of ${one.spec.attacher} CSI driver to attach volume ${volume.spec.csi?.volumeHandle}`
        for (const pod of pods) events.event(pod, 'Warning', failed, `AttachVolume.Attach failed for volume "${volume.metadata.name}" : ${message}`)
      }
      if (since.size === 0) return void lateSince.delete(nodeName)
      lateSince.set(nodeName, since)
      return least(since.values()) + patienceMs - nowMs
    },
    keep(nodeName, wanted, taken) {
      const still = new Set([...(reported.get(nodeName) ?? [])].filter((name) => wanted.has(name) && taken.includes(name)))
      if (still.size > 0) reported.set(nodeName, still)
      else reported.delete(nodeName)
    },
  }
}

/** Names of pods in other namespaces are none of a pod's business. */
function holdersText(pod: Frozen<Pod>, users: readonly Frozen<Pod>[]): string {
  if (users.length === 0) return "Volume is already exclusively attached to one node and can't be attached to another"
  const near = users.filter(({ metadata }) => metadata.namespace === pod.metadata.namespace).map(({ metadata }) => metadata.name)
  const far = users.length - near.length
  if (near.length === 0) return `Volume is already used by ${far} pod(s) in different namespaces`
  return `Volume is already used by pod(s) ${near.join(', ')}${far > 0 ? ` and ${far} pod(s) in different namespaces` : ''}`
}
