/**
 * ConfigMaps, Secrets and facts of the pod as files: the same behaviours, whether a volume is of one kind or projected from it. Each form of
 * the volume is a Source, from which the groups build their behaviours. Upstream: test/e2e/common/storage/{configmap,secrets,downwardapi,projected_*}.go.
 */
import assert from 'node:assert/strict'
import type { KeyToPath, Volume } from '#api/gen/types/core.v1'
import { configMaps, secrets } from '#client/builtIn'
import type { Behaviour } from '../behaviour.ts'
import type { BehaviourContext } from '../context.ts'

export interface SourceOptions {
  readonly items?: KeyToPath[]
  readonly optional?: boolean
  readonly defaultMode?: number
}

/** A kind of object whose keys become files. */
export interface Source {
  readonly kind: 'configMap' | 'secret'
  readonly projected: boolean
}

/** The volume of an object by this name. */
export function volumeOf({ kind, projected }: Source, name: string, options: SourceOptions = {}): Volume {
  const { defaultMode, ...rest } = options
  const mode = defaultMode === undefined ? {} : { defaultMode }
  if (projected)
    return { name: 'files', projected: { ...mode, sources: [kind === 'configMap' ? { configMap: { name, ...rest } } : { secret: { name, ...rest } }] } }
  return kind === 'configMap' ? { name: 'files', configMap: { name, ...mode, ...rest } } : { name: 'files', secret: { secretName: name, ...mode, ...rest } }
}

export async function createSource({ create }: BehaviourContext, { kind }: Source, name: string, data: Readonly<Record<string, string>>): Promise<void> {
  if (kind === 'configMap') await create(configMaps, { metadata: { name }, data: { ...data } })
  else await create(secrets, { metadata: { name }, stringData: { ...data } })
}

async function changeSource({ client, namespace }: BehaviourContext, { kind }: Source, name: string, data: Readonly<Record<string, string>>): Promise<void> {
  if (kind === 'configMap') await client.of(configMaps).patch({ namespace, name }, 'merge', { data })
  else await client.of(secrets).patch({ namespace, name }, 'merge', { stringData: data })
}

async function deleteSource({ client, namespace }: BehaviourContext, { kind }: Source, name: string): Promise<void> {
  await (kind === 'configMap' ? client.of(configMaps) : client.of(secrets)).delete({ namespace, name })
}

const mounted = [{ name: 'files', mountPath: '/files' }]
const data = { 'data-1': 'value-1', 'data-2': 'value-2', 'data-3': 'value-3' }
const renamed = [{ key: 'data-2', path: 'path/to/data-2' }]
const nonRoot = { runAsUser: 1000 }

interface ReadCase {
  readonly name: string
  readonly options?: SourceOptions
  readonly file?: string
  /** As `stat -c %a` prints it, of the file. */
  readonly mode?: string
  readonly pod?: { readonly runAsUser?: number; readonly fsGroup?: number }
}

const readCases = {
  plain: { name: 'plain', mode: '644' },
  nonRoot: { name: 'non-root', pod: nonRoot },
  nonRootWithGroup: { name: 'non-root + fsGroup', pod: { ...nonRoot, fsGroup: 1001 }, options: { defaultMode: 0o440 }, mode: '440' },
  defaultMode: { name: 'defaultMode', options: { defaultMode: 0o400 }, mode: '400' },
  mapped: { name: 'mapped', options: { items: renamed }, file: 'path/to/data-2' },
  mappedMode: { name: 'mapped item mode', options: { items: [{ ...renamed[0], mode: 0o400 } as KeyToPath] }, file: 'path/to/data-2', mode: '400' },
  mappedNonRoot: { name: 'mapped non-root', options: { items: renamed }, file: 'path/to/data-2', pod: nonRoot },
} satisfies Readonly<Record<string, ReadCase>>

export type ReadCaseName = keyof typeof readCases

/** A pod reads a file of the volume, as this user, with this mode. */
export function reads(source: Source, which: ReadCaseName): Behaviour {
  const { name, options, file = 'data-1', mode, pod }: ReadCase = readCases[which]
  return {
    name,
    run: async (context) => {
      await createSource(context, source, 'source', data)
      const script = `cat /files/${file}; echo; stat -L -c '%a' /files/${file}`
      const spec = { volumes: [volumeOf(source, 'source', options)], ...(pod ? { securityContext: pod } : {}) }
      const [content, seenMode] = (await context.outputOf({ script, container: { volumeMounts: mounted }, spec })).split('\n')
      assert.equal(content, file.endsWith('data-2') ? 'value-2' : 'value-1')
      if (mode) assert.equal(seenMode, mode)
    },
  }
}

/** One object in two places of one pod. */
export function severalMounts(source: Source): Behaviour {
  return {
    name: 'several mounts',
    run: async (context) => {
      await createSource(context, source, 'source', data)
      const volumes = ['one', 'two'].map((name) => ({ ...volumeOf(source, 'source'), name }))
      const volumeMounts = volumes.map(({ name }) => ({ name, mountPath: `/${name}`, readOnly: true }))
      assert.equal(await context.outputOf({ script: 'cat /one/data-1 /two/data-1', container: { volumeMounts }, spec: { volumes } }), 'value-1value-1')
    },
  }
}

/** The pod's file follows the object. The kubelet syncs at least once a minute, and at once where it watches the object. */
export function updateReflected(source: Source): Behaviour {
  return {
    name: 'update reflected',
    run: async (context) => {
      await createSource(context, source, 'source', data)
      const pod = await context.readyPod({ script: 'sleep 600', container: { volumeMounts: mounted }, spec: { volumes: [volumeOf(source, 'source')] } })
      const read = () => context.execText(pod.metadata.name ?? '', 'cat /files/data-1')
      assert.equal(await read(), 'value-1')
      await changeSource(context, source, 'source', { 'data-1': 'value-2' })
      await context.eventually('the new value in the volume', read, (text) => text === 'value-2')
    },
  }
}

/** Volumes of objects that are created, changed and deleted while the pod runs. */
export function optionalReflected(source: Source, name: string): Behaviour {
  return {
    name,
    run: async (context) => {
      await createSource(context, source, 'deleted', { 'data-1': 'value-1' })
      await createSource(context, source, 'changed', { 'data-1': 'value-1' })
      const objects = ['deleted', 'changed', 'created']
      const volumes = objects.map((object) => ({ ...volumeOf(source, object, { optional: true }), name: object }))
      const volumeMounts = objects.map((object) => ({ name: object, mountPath: `/${object}` }))
      const pod = await context.readyPod({ script: 'sleep 600', container: { volumeMounts }, spec: { volumes } })
      const listing = () => context.execText(pod.metadata.name ?? '', 'for f in /deleted /changed /created; do echo $f $(ls $f) $(cat $f/* 2>/dev/null); done')
      assert.equal(await listing(), '/deleted data-1 value-1\n/changed data-1 value-1\n/created')
      await deleteSource(context, source, 'deleted')
      await changeSource(context, source, 'changed', { 'data-3': 'value-3' })
      await createSource(context, source, 'created', { 'data-1': 'value-1' })
      const wanted = '/deleted\n/changed data-1 data-3 value-1value-3\n/created data-1 value-1'
      await context.eventually('all three changes in the volumes', listing, (text) => text === wanted)
    },
  }
}
