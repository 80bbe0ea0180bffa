/**
 * Pods that run without the API server (L3), from files and a URL. Each has a mirror pod in the API, which only shows it.
 * In order: podSources.ts reads the text, manifests.ts converts it to pods, this file starts the pods and creates their mirrors.
 * Upstream: kubelet/config/config.go, kubelet/pod/mirror_client.go (v1.36).
 */
import type { Pod } from '#api/gen/types/core.v1'
import { type Frozen, keyOf } from '#api/machinery/meta'
import { isStatus } from '#api/machinery/status'
import { abortScope } from '#base/abortScope'
import { least } from '#base/extremes'
import { deepCopy } from '#base/frozen'
import { messageOf } from '#base/messageOf'
import { nodes, pods } from '#client/builtIn'
import { configHashAnnotation, configMirrorAnnotation, configSourceAnnotation, type FrozenPod, formatPod, isStaticPod } from '../core/containers.ts'
import type { KubeletContext } from '../core/context.ts'
import { isolated } from '../core/listWatch.ts'
import { podReference } from '../core/podReference.ts'
import type { PodWorkers } from '../pods/podWorkers.ts'
import type { PodSource } from './podSources.ts'

const retryMs = 2_000
const never = Number.NEGATIVE_INFINITY

export function isMirrorOf(mirror: FrozenPod, pod: FrozenPod): boolean {
  return mirror.metadata.annotations?.[configMirrorAnnotation] === pod.metadata.annotations?.[configHashAnnotation] && !mirror.metadata.deletionTimestamp
}

/** The object that shows a static pod in the API: owned by the node, its status the kubelet's to write. */
export function mirrorPod(pod: FrozenPod, node: { readonly name: string; readonly uid: string }): Pod {
  const { metadata, spec } = deepCopy<Pod>(pod)
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: {
      name: metadata.name,
      namespace: metadata.namespace,
      ...(metadata.labels ? { labels: metadata.labels } : {}),
      annotations: { ...metadata.annotations, [configMirrorAnnotation]: metadata.annotations?.[configHashAnnotation] ?? '' },
      ownerReferences: [{ apiVersion: 'v1', kind: 'Node', name: node.name, uid: node.uid, controller: true }],
    },
    spec,
    status: {},
  }
}

export interface StaticPods {
  /** Takes a pod from the API; returns true for a mirror pod, which must not run. */
  mirrorSeen(pod: FrozenPod, gone: boolean): boolean
  /** Forgets all mirrors before a new list: mirrors that are not in it are deleted. */
  forgetMirrors(): void
  /** Resolves when every source has been read once. */
  readonly read: Promise<void>
  /** The pod's object in the API: itself, or its mirror; undefined while there is none. */
  apiPod(pod: FrozenPod): FrozenPod | undefined
  /** Follows the directory until aborted. */
  run(workers: PodWorkers, signal: AbortSignal): Promise<void>
}

/** Only the first pod of a name runs. */
export function withoutDuplicates(pods: readonly Pod[], onDuplicate: (pod: Pod) => void): Pod[] {
  const names = new Set<string>()
  return pods.filter((pod) => {
    const isNew = !names.has(keyOf(pod))
    names.add(keyOf(pod))
    if (!isNew) onDuplicate(pod)
    return isNew
  })
}

interface Source {
  readonly source: PodSource
  readonly periodMs: number
  readAtMs: number
  /** Undefined until it could be read. */
  pods: readonly Pod[] | undefined
}

/** The code that reads and validates manifests is loaded only on nodes with static pods. */
async function sourcesOf(context: KubeletContext): Promise<Source[]> {
  const { config } = context
  const { fileSource, urlSource } = await import('./podSources.ts')
  const sources: Source[] = []
  if (config.staticPodPath !== '') sources.push({ source: fileSource(context), periodMs: config.fileCheckFrequencyMs, readAtMs: never, pods: undefined })
  if (config.staticPodURL !== '') sources.push({ source: urlSource(context), periodMs: config.httpCheckFrequencyMs, readAtMs: never, pods: undefined })
  return sources
}

/** @param onNewMirror called with the uid of a static pod whose mirror is new and has no status yet */
export function createStaticPods(context: KubeletContext, onNewMirror: (uid: string) => void): StaticPods {
  const { config, clock, log } = context
  const mirrors = new Map<string, Frozen<Pod>>()
  let current = new Map<string, Pod>()
  let wakeMirrors = () => {}
  let markRead = () => {}
  const read = new Promise<void>((resolve) => {
    markRead = resolve
  })
  const isUsed = config.staticPodPath !== '' || config.staticPodURL !== ''
  if (!isUsed) markRead()

  const readAll = async (sources: readonly Source[]): Promise<Map<string, Pod>> => {
    for (const entry of sources) {
      const nowMs = clock.monotonicMs()
      // Files are read at every wake-up; other sources only once per period.
      if (!entry.source.isCheap && nowMs - entry.readAtMs < entry.periodMs) continue
      entry.readAtMs = nowMs
      try {
        entry.pods = (await entry.source.read()) ?? entry.pods
      } catch (error) {
        log.warn('Static pods could not be read', { error: messageOf(error) })
      }
    }
    const all = sources.flatMap(({ pods: read }) => read ?? [])
    const distinct = withoutDuplicates(all, (pod) => {
      const message = `Error validating pod ${formatPod(pod)} from ${pod.metadata.annotations?.[configSourceAnnotation]} due to duplicate pod name "${pod.metadata.name}", ignoring`
      context.recorder.event(podReference(pod), 'Warning', 'FailedValidation', message)
    })
    return new Map(distinct.map((pod) => [pod.metadata.uid ?? '', pod]))
  }

  /** Returns false when a mirror could not be updated; the others are updated anyway, and all are retried. */
  const syncMirrors = async (): Promise<boolean> => {
    const client = context.client.of(pods)
    let inStep = true
    const failed = (key: string) => (error: unknown) => {
      inStep = false
      log.v(1).info('A mirror pod is not in step, will retry', { key, error: messageOf(error) })
    }
    const byKey = new Map([...current.values()].map((pod) => [keyOf(pod), pod]))
    for (const [key, mirror] of mirrors) {
      const pod = byKey.get(key)
      if (pod && isMirrorOf(mirror, pod)) continue
      const { namespace, name = '', uid } = mirror.metadata
      await client.delete({ namespace, name }, { gracePeriodSeconds: 0, preconditions: { uid } }).catch((error: unknown) => {
        if (!isStatus(error, 'NotFound') && !isStatus(error, 'Conflict')) failed(key)(error)
      })
    }
    for (const [key, pod] of byKey) if (!mirrors.has(key)) await createMirror(pod).catch(failed(key))
    return inStep
  }
  const createMirror = async (pod: Pod): Promise<void> => {
    const node = await context.client.of(nodes).get({ name: config.nodeName })
    await context.client
      .of(pods)
      .create(mirrorPod(pod, { name: config.nodeName, uid: node.metadata.uid ?? '' }))
      .catch((error: unknown) => {
        if (!isStatus(error, 'AlreadyExists')) throw error
      })
  }

  return {
    read,
    forgetMirrors: () => mirrors.clear(),
    mirrorSeen: (pod, gone) => {
      if (pod.metadata.annotations?.[configMirrorAnnotation] === undefined) return false
      const before = mirrors.get(keyOf(pod))
      if (gone) mirrors.delete(keyOf(pod))
      else mirrors.set(keyOf(pod), pod)
      const uid = pod.metadata.annotations[configHashAnnotation]
      if (!gone && uid && before?.metadata.uid !== pod.metadata.uid) onNewMirror(uid)
      wakeMirrors()
      return true
    },
    apiPod: (pod) => (isStaticPod(pod) ? mirrors.get(keyOf(pod)) : pod),
    run: async (workers, signal) => {
      if (!isUsed) return
      const sources = await sourcesOf(context)
      const periodMs = least(sources.map((entry) => entry.periodMs))
      for (const { source } of sources) source.watch(() => wakeMirrors(), signal)
      while (!signal.aborted) {
        // A change during the reading causes another round.
        using woken = abortScope(signal)
        wakeMirrors = () => woken.abort()
        const wanted = await readAll(sources)
        for (const [uid, pod] of current) if (!wanted.has(uid)) isolated(log, pod, () => workers.deleted(pod))
        for (const [uid, pod] of wanted) if (!current.has(uid)) isolated(log, pod, () => workers.update(pod))
        current = new Map([...wanted].map(([uid, pod]) => [uid, current.get(uid) ?? pod]))
        if (sources.every((entry) => entry.pods !== undefined)) markRead()
        const synced = context.isStandalone || (await syncMirrors())
        await clock.sleep(synced ? periodMs : retryMs, woken.signal).catch(() => {})
      }
    },
  }
}
