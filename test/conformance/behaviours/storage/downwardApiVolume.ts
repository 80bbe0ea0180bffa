/** The downward API in files. Upstream: test/e2e/common/storage/downwardapi_volume.go, projected_downwardapi.go. */
import assert from 'node:assert/strict'
import type { DownwardAPIVolumeFile, Volume } from '#api/gen/types/core.v1'
import { nodes, pods } from '#client/builtIn'
import { type Behaviour, type BehaviourGroup, table } from '../behaviour.ts'
import type { BehaviourContext, PodInput } from '../context.ts'

const volumeMounts = [{ name: 'about', mountPath: '/about' }]
const resources = { requests: { cpu: '250m', memory: '32Mi' }, limits: { cpu: '1250m', memory: '64Mi' } }
const resource = (path: string, divisor?: string): DownwardAPIVolumeFile => ({
  path: 'file',
  resourceFieldRef: { containerName: 'main', resource: path, ...(divisor ? { divisor } : {}) },
})
const field = (fieldPath: string): DownwardAPIVolumeFile => ({ path: 'file', fieldRef: { apiVersion: 'v1', fieldPath } })

type MakeVolume = (items: DownwardAPIVolumeFile[], defaultMode?: number) => Volume

const plain: MakeVolume = (items, defaultMode) => ({ name: 'about', downwardAPI: { items, ...(defaultMode ? { defaultMode } : {}) } })
const projected: MakeVolume = (items, defaultMode) => ({
  name: 'about',
  projected: { sources: [{ downwardAPI: { items } }], ...(defaultMode ? { defaultMode } : {}) },
})

const fixed = [
  { name: 'cpu limit', file: resource('limits.cpu'), content: '2' },
  { name: 'cpu request', file: resource('requests.cpu', '1m'), content: '250' },
  { name: 'memory limit', file: resource('limits.memory'), content: '67108864' },
  { name: 'memory request', file: resource('requests.memory', '1Mi'), content: '32' },
]

const kibibytes = (quantity: string | undefined) => Number(/^(\d+)Ki$/.exec(quantity ?? '')?.[1])

function read(context: BehaviourContext, volume: Volume, input: PodInput = {}, script = 'cat /about/file'): Promise<string> {
  const container = { volumeMounts, ...input.container }
  return context.outputOf({ script, ...input, container, spec: { volumes: [volume] } })
}

/** Without a limit the container may use the node's allocatable resources. */
function nodeDefault(name: string, make: MakeVolume, of: 'cpu' | 'memory'): Behaviour {
  return {
    name,
    run: async (context) => {
      const divisor = of === 'cpu' ? '1' : '1Ki'
      const pod = await context.runPod({
        script: 'cat /about/file',
        container: { volumeMounts },
        spec: { volumes: [make([resource(`limits.${of}`, divisor)])] },
      })
      const { status } = await context.get(nodes, pod.spec.nodeName ?? '')
      const wanted = of === 'cpu' ? Number(status?.allocatable?.cpu) : kibibytes(status?.allocatable?.memory)
      assert.equal(Number(await context.logs(pod.metadata.name ?? '')), wanted)
    },
  }
}

/** The file follows changes of labels or annotations. */
function follows(name: string, make: MakeVolume, of: 'labels' | 'annotations'): Behaviour {
  return {
    name,
    run: async (context) => {
      const volumes = [make([field(`metadata.${of}`)])]
      const pod = await context.readyPod({ script: 'sleep 600', [of]: { key: 'before' }, container: { volumeMounts }, spec: { volumes } })
      const ref = { namespace: context.namespace, name: pod.metadata.name ?? '' }
      const content = () => context.execText(ref.name, 'cat /about/file')
      assert.match(await content(), /^key="before"$/m)
      await context.client.of(pods).patch(ref, 'merge', { metadata: { [of]: { key: 'after' } } })
      await context.eventually(`the changed ${of} in the volume`, content, (text) => /^key="after"$/m.test(text))
    },
  }
}

function behaviours(make: MakeVolume, names: { readonly defaultCpu: string; readonly defaultMemory: string }): Behaviour[] {
  return [
    ...table(fixed, ({ name, file, content }) => ({
      name,
      run: async (context) => assert.equal(await read(context, make([file]), { container: { resources } }), content),
    })),
    nodeDefault(names.defaultCpu, make, 'cpu'),
    nodeDefault(names.defaultMemory, make, 'memory'),
    {
      name: 'pod name',
      run: async (context) => assert.equal(await read(context, make([field('metadata.name')]), { name: 'its-name' }), 'its-name'),
    },
    {
      name: 'DefaultMode',
      run: async (context) => assert.equal(await read(context, make([field('metadata.name')], 0o400), {}, 'stat -L -c %a /about/file'), '400'),
    },
    {
      name: 'item mode',
      run: async (context) => assert.equal(await read(context, make([{ ...field('metadata.name'), mode: 0o400 }]), {}, 'stat -L -c %a /about/file'), '400'),
    },
    follows('annotation update', make, 'annotations'),
    follows('label update', make, 'labels'),
  ]
}

export const downwardApiVolume: BehaviourGroup = {
  sig: 'sig-storage',
  title: 'Downward API volume',
  rows: ['STO-03'],
  behaviours: behaviours(plain, { defaultCpu: 'default cpu limit from node', defaultMemory: 'default memory limit from node' }),
}

export const projectedDownwardApi: BehaviourGroup = {
  sig: 'sig-storage',
  title: 'Projected downwardAPI',
  rows: ['STO-03'],
  behaviours: behaviours(projected, { defaultCpu: 'default cpu', defaultMemory: 'default memory' }),
}
