/**
 * Pods from files (L3): manifests in a directory run without the API server; each is shown there by a mirror pod, which is only an image of it.
 * Upstream: kubelet/config/file.go, common.go, kubelet/pod/mirror_client.go (v1.36).
 */
import { createHash } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import type { Pod } from '#api/gen/types/core.v1'
import { type Frozen, keyOf } from '#api/machinery/meta'
import { isStatus } from '#api/machinery/status'
import { parseYaml } from '#api/machinery/yaml'
import { deepCopy } from '#base/frozen'
import { formatTime } from '#base/time'
import { nodes, pods } from '#client/builtIn'
import { listIfExists } from '#host/files'
import type { KubeletContext } from '../context.ts'
import { configMirrorAnnotation, configSourceAnnotation, type FrozenPod, isStaticPod } from '../pods/containers.ts'
import type { PodWorkers } from '../pods/podWorkers.ts'

const configHashAnnotation = 'kubernetes.io/config.hash'
const configSeenAnnotation = 'kubernetes.io/config.seen'
const retryMs = 2_000

/** The pod of a manifest, as the node runs it. @throws Error for text that is no Pod. */
export function staticPod(text: string, nodeName: string, nowMs: number): Pod {
  const manifest = parseYaml(text) as Partial<Pod> | null
  if (manifest?.kind !== 'Pod' || manifest.apiVersion !== 'v1' || !manifest.metadata?.name || !manifest.spec?.containers) throw new Error('not a v1 Pod')
  const uid = createHash('md5').update(text).update(nodeName).digest('hex')
  const { metadata, spec } = manifest
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: {
      ...metadata,
      name: `${metadata.name}-${nodeName}`.toLowerCase(),
      namespace: metadata.namespace ?? 'default',
      uid,
      annotations: {
        ...metadata.annotations,
        [configSourceAnnotation]: 'file',
        [configHashAnnotation]: uid,
        [configSeenAnnotation]: formatTime(nowMs),
      },
    },
    // A static pod stays whatever the node is tainted with.
    spec: { ...spec, nodeName, tolerations: [...(spec.tolerations ?? []), { operator: 'Exists', effect: 'NoExecute' }] },
    status: { phase: 'Pending' },
  }
}

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
  /** Takes what the API says about mirror pods; true when the pod is one and so must not run. */
  mirrorSeen(pod: FrozenPod, gone: boolean): boolean
  /** A fresh list is about to be told: what it does not hold is gone. */
  forgetMirrors(): void
  /** Resolves when the directory has been read once. */
  readonly read: Promise<void>
  /** What the API shows for a pod: itself, or its mirror; undefined while there is none. */
  apiPod(pod: FrozenPod): FrozenPod | undefined
  /** Follows the directory until aborted. */
  run(workers: PodWorkers, signal: AbortSignal): Promise<void>
}

/** @param onNewMirror hears the uid of a static pod that has got a new mirror, which knows nothing of its status yet. */
export function createStaticPods(context: KubeletContext, onNewMirror: (uid: string) => void): StaticPods {
  const { config, clock, log, host } = context
  const mirrors = new Map<string, Frozen<Pod>>()
  let current = new Map<string, Pod>()
  let wakeMirrors = () => {}
  let markRead = () => {}
  const read = new Promise<void>((resolve) => {
    markRead = resolve
  })
  if (config.staticPodPath === '') markRead()

  const readAll = async (): Promise<Map<string, Pod>> => {
    const found = new Map<string, Pod>()
    const directory = host?.path(config.staticPodPath) ?? config.staticPodPath
    for (const name of (await listIfExists(directory)).filter((entry) => !entry.startsWith('.')).sort()) {
      try {
        const pod = staticPod(await readFile(`${directory}/${name}`, 'utf8'), config.nodeName, clock.now())
        found.set(pod.metadata.uid ?? '', pod)
      } catch (error) {
        log.warn('Could not process manifest file', { file: name, error: error instanceof Error ? error.message : String(error) })
      }
    }
    return found
  }

  const syncMirrors = async (): Promise<void> => {
    const client = context.client.of(pods)
    const byKey = new Map([...current.values()].map((pod) => [keyOf(pod), pod]))
    for (const [key, mirror] of mirrors) {
      const pod = byKey.get(key)
      if (pod && isMirrorOf(mirror, pod)) continue
      const { namespace, name = '', uid } = mirror.metadata
      await client.delete({ namespace, name }, { gracePeriodSeconds: 0, preconditions: { uid } }).catch((error: unknown) => {
        if (!isStatus(error, 'NotFound') && !isStatus(error, 'Conflict')) throw error
      })
    }
    for (const [key, pod] of byKey) {
      if (mirrors.has(key)) continue
      const node = await context.client.of(nodes).get({ name: config.nodeName })
      await client.create(mirrorPod(pod, { name: config.nodeName, uid: node.metadata.uid ?? '' })).catch((error: unknown) => {
        if (!isStatus(error, 'AlreadyExists')) throw error
      })
    }
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
      if (config.staticPodPath === '') return
      while (!signal.aborted) {
        const wanted = await readAll()
        for (const [uid, pod] of current) if (!wanted.has(uid)) workers.deleted(pod)
        for (const [uid, pod] of wanted) if (!current.has(uid)) workers.update(pod)
        current = new Map([...wanted].map(([uid, pod]) => [uid, current.get(uid) ?? pod]))
        markRead()
        const woken = new AbortController()
        wakeMirrors = () => woken.abort()
        const synced = await syncMirrors().then(
          () => true,
          (error: unknown) => {
            log.v(1).info('Mirror pods not in step, will retry', { error: error instanceof Error ? error.message : String(error) })
            return false
          },
        )
        await clock.sleep(synced ? config.fileCheckFrequencyMs : retryMs, AbortSignal.any([signal, woken.signal])).catch(() => {})
      }
    },
  }
}
