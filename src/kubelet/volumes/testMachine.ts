/** Gives tests of volumes (L3, tests only) a kubelet's directory on this machine, an API with a few objects, and the events that were recorded. */
import { mkdtemp, realpath, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { ConfigMap, Node, PersistentVolume, PersistentVolumeClaim, Secret } from '#api/gen/types/core.v1'
import type { CSIDriver, CSINode, VolumeAttachment } from '#api/gen/types/storage.v1'
import { StatusError } from '#api/machinery/status'
import { noLog } from '#base/log'
import { type Gauge, noMetrics } from '#base/metrics'
import { VirtualClock } from '#base/virtualClock'
import { kubeletConfig } from '../core/config.ts'
import type { KubeletContext } from '../core/context.ts'
import { createKubeletHost, type KubeletHost } from '../core/host.ts'

type ApiObject = PersistentVolume | PersistentVolumeClaim | Node | ConfigMap | Secret | CSIDriver | CSINode | VolumeAttachment

export interface TestMachine {
  /** The kubelet's root directory. */
  readonly root: string
  readonly context: KubeletContext
  readonly host: KubeletHost
  readonly events: string[]
  /** Patches that were sent, as JSON. */
  readonly patches: string[]
  /** Name of a gauge → its last value. */
  readonly gauges: Map<string, number>
  /** Objects of the API by 'Kind/name'. */
  readonly objects: Map<string, ApiObject>
  mountsBelow(): Promise<string[]>
}

/** Runs a test and unmounts whatever it leaves behind when it fails. */
export async function onMachine(run: (machine: TestMachine) => Promise<void>): Promise<void> {
  const root = await realpath(await mkdtemp(join(tmpdir(), 'volume-manager-')))
  const host = await createKubeletHost()
  const [events, patches, gauges, objects]: [string[], string[], TestMachine['gauges'], TestMachine['objects']] = [[], [], new Map(), new Map()]
  const read = async (kind: string, name: string) => {
    const found = objects.get(`${kind}/${name}`)
    if (!found) throw new StatusError('NotFound', `${kind} "${name}" not found`)
    return found
  }
  const write = async (kind: string, object: ApiObject) => {
    objects.set(`${kind}/${object.metadata.name}`, object)
    return object
  }
  const client = {
    of: ({ kind }: { kind: string }) => ({
      create: (object: ApiObject) => write(kind, object),
      update: (object: ApiObject) => write(kind, object),
      get: ({ name }: { name: string }) => read(kind, name),
      createSubresource: async () => ({ status: { token: 'token', expirationTimestamp: '2026-01-01T01:00:00Z' } }),
      patch: async ({ name }: { name: string }, _type: string, body: object) => void patches.push(`${kind}/${name} ${JSON.stringify(body)}`),
    }),
  }
  const gauge = ({ name }: { name: string }): Gauge => ({ ...noMetrics.gauge({ name, help: '' }), set: (value) => void gauges.set(name, value) })
  const context = {
    host,
    client,
    machineInfo: { kernelVersion: '6.18.0' },
    log: noLog,
    metrics: { ...noMetrics, gauge },
    random: { int: () => 0, next: () => 0 },
    clock: new VirtualClock('2026-01-01T00:00:00Z'),
    config: kubeletConfig({ nodeName: 'node-1', rootDirectory: root }),
    recorder: { event: (_: unknown, type: string, reason: string, message: string) => void events.push(`${type} ${reason} ${message}`) },
    objects: { configMap: (_: string, name: string) => read('ConfigMap', name), secret: (_: string, name: string) => read('Secret', name) },
    runtime: {},
    allocatable: { memory: '1Gi' },
  } as unknown as KubeletContext
  const mountsBelow = async () => (await host.mounter.list()).map(({ mountPoint }) => mountPoint).filter((point) => point.startsWith(`${root}/`))
  try {
    await run({ root, context, host, events, patches, gauges, objects, mountsBelow })
  } finally {
    for (const point of (await mountsBelow()).reverse()) await host.mounter.unmount(point, { lazy: true })
    await rm(root, { recursive: true, force: true })
  }
}
