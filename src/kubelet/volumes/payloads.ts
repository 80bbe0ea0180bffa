/** The files of configuration volumes (L3): from ConfigMaps, Secrets and the downward API. Upstream: pkg/volume/{configmap,secret,downwardapi,projected} (v1.36). */
import type { ConfigMap, DownwardAPIVolumeFile, KeyToPath, Secret } from '#api/gen/types/core.v1'
import type { Frozen } from '#api/machinery/meta'
import type { FrozenPod } from '../core/containers.ts'
import type { KubeletContext } from '../core/context.ts'
import { podField, resourceField } from '../core/downwardApi.ts'
import type { FileProjection } from './atomicWriter.ts'

export const defaultFileMode = 0o644

type Items = readonly Frozen<KeyToPath>[] | undefined

/** Selects keys and maps them to paths; without items, every key is a file of its own name. @throws Error for a missing key */
export function selectItems(
  source: 'configmap' | 'secret',
  data: ReadonlyMap<string, Uint8Array>,
  items: Items,
  defaultMode: number,
  optional: boolean,
): Map<string, FileProjection> {
  if (!items || items.length === 0) return new Map([...data].map(([key, bytes]) => [key, { data: bytes, mode: defaultMode }]))
  const collected = new VolumeFiles()
  for (const { key, path, mode } of items) {
    const bytes = data.get(key)
    if (bytes) collected.add(path, { data: bytes, mode: mode ?? defaultMode })
    else if (!optional)
      throw new Error(source === 'secret' ? `references non-existent secret key: ${key}` : `configmap references non-existent config key: ${key}`)
  }
  return collected.files
}

export function configMapData(configMap: Frozen<ConfigMap> | undefined): Map<string, Uint8Array> {
  return new Map([
    ...Object.entries(configMap?.data ?? {}).map(([key, text]): [string, Uint8Array] => [key, Buffer.from(text)]),
    ...Object.entries(configMap?.binaryData ?? {}).map(([key, text]): [string, Uint8Array] => [key, Buffer.from(text, 'base64')]),
  ])
}

export function secretData(secret: Frozen<Secret> | undefined): Map<string, Uint8Array> {
  return new Map(Object.entries(secret?.data ?? {}).map(([key, text]) => [key, Buffer.from(text, 'base64')]))
}

/** Limit for the files of one volume together: one volume may project the same key thousands of times. */
const maxVolumeBytes = 64 * 1024 * 1024

/** Collects the files of a volume by path; a later one of the same path replaces the one before. */
export class VolumeFiles {
  readonly files = new Map<string, FileProjection>()
  #bytes = 0

  /** @throws Error when the files together have more bytes than a volume may hold */
  add(path: string, file: FileProjection): void {
    this.#bytes += file.data.length
    if (this.#bytes > maxVolumeBytes) throw new Error(`the files of the volume have more than ${maxVolumeBytes} bytes`)
    this.files.set(path, file)
  }
}

/** The files of a downward API volume, by path. */
export function downwardApiFiles(
  context: KubeletContext,
  pod: FrozenPod,
  items: readonly Frozen<DownwardAPIVolumeFile>[],
  defaultMode: number,
): Map<string, FileProjection> {
  // Files cannot show addresses, which are not known yet: upstream allows metadata only.
  const facts = { podIPs: [], hostIPs: [] }
  const collected = new VolumeFiles()
  for (const item of items) {
    const [container] = pod.spec.containers
    const text = item.fieldRef
      ? podField(pod, item.fieldRef.fieldPath, facts)
      : item.resourceFieldRef && container
        ? resourceField(pod, container, item.resourceFieldRef, context.allocatable)
        : ''
    collected.add(item.path, { data: Buffer.from(text), mode: item.mode ?? defaultMode })
  }
  return collected.files
}
