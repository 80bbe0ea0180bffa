/**
 * Reads manifests of static pods (L3) from a directory or file, after changes that the kernel reports and periodically, and from a URL.
 * An invalid manifest is logged and skipped; an unreadable source keeps its pods unchanged.
 * Upstream: kubelet/config/{file,file_linux,http}.go (v1.36).
 */
import { watch } from 'node:fs'
import { readFile, stat } from 'node:fs/promises'
import type { Pod } from '#api/gen/types/core.v1'
import { deadlineScope } from '#base/abortScope'
import { messageOf } from '#base/messageOf'
import { listIfExists } from '#host/files'
import type { KubeletContext } from '../core/context.ts'
import { podsOfManifest } from './manifests.ts'

export interface PodSource {
  /** It may be read at any time, and often. */
  readonly isCheap: boolean
  /** All pods of the source as they are now; undefined: it cannot be read, nothing is known to have changed. */
  read(): Promise<readonly Pod[] | undefined>
  /** Calls back when the source may have changed, until aborted. */
  watch(onChange: () => void, signal: AbortSignal): void
}

const httpTimeoutMs = 10_000
const maxManifestBytes = 1 << 20

/** A directory of manifests, or a single file. Names that begin with a dot are skipped. */
export function fileSource({ config, clock, log, host }: KubeletContext): PodSource {
  const path = host?.path(config.staticPodPath) ?? config.staticPodPath
  const paths = async (): Promise<string[]> => {
    const isDirectory = await stat(path).then(
      (found) => found.isDirectory(),
      () => true,
    )
    if (!isDirectory) return [path]
    return (await listIfExists(path))
      .filter((entry) => !entry.startsWith('.'))
      .sort()
      .map((entry) => `${path}/${entry}`)
  }
  return {
    isCheap: true,
    read: async () => {
      const found: Pod[] = []
      for (const file of await paths()) {
        try {
          const about = await stat(file)
          if (!about.isFile()) continue
          if (about.size > maxManifestBytes) throw new Error(`it has ${about.size} bytes: at most ${maxManifestBytes} are read`)
          found.push(...podsOfManifest(await readFile(file, 'utf8'), { source: 'file', nodeName: config.nodeName, nowMs: clock.now() }))
        } catch (error) {
          log.warn('Could not process manifest file', { file, error: messageOf(error) })
        }
      }
      return found
    },
    watch: (onChange, signal) => {
      try {
        watch(path, { persistent: false, signal }, onChange).on('error', () => {})
      } catch {
        // What does not exist yet is found when it is read again.
      }
    },
  }
}

/** One Pod or a PodList behind a URL. */
export function urlSource({ config, clock, log }: KubeletContext): PodSource {
  let text: string | undefined
  let failures = 0
  const fetchText = async (): Promise<string> => {
    const headers = new Headers()
    for (const [name, values] of Object.entries(config.staticPodURLHeader)) for (const value of values) headers.append(name, value)
    using limit = deadlineScope({ clock, ms: httpTimeoutMs })
    const response = await fetch(config.staticPodURL, { headers, signal: limit.signal })
    const body = await response.text()
    if (response.status !== 200) throw new Error(`${config.staticPodURL}: ${response.status} ${response.statusText}`)
    if (body.length > maxManifestBytes) throw new Error(`${config.staticPodURL}: it has ${body.length} bytes: at most ${maxManifestBytes} are read`)
    return body
  }
  return {
    isCheap: false,
    read: async () => {
      try {
        const now = await fetchText()
        if (now === text) return undefined
        const found = now === '' ? [] : podsOfManifest(now, { source: 'http', nodeName: config.nodeName, nowMs: clock.now() })
        text = now
        failures = 0
        return found
      } catch (error) {
        // The first few errors are enough.
        if (failures < 3) log.warn('Failed to read pods from URL', { url: config.staticPodURL, error: messageOf(error) })
        failures++
        return undefined
      }
    },
    watch: () => {},
  }
}
