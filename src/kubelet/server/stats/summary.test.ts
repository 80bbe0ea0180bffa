import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import type { Pod } from '#api/gen/types/core.v1'
import { prometheusText } from '#base/prometheusText'
import type { KubeletView } from '../../core/kubeletView.ts'
import { onMachine } from '../../volumes/testMachine.ts'
import { createVolumeManager } from '../../volumes/volumeManager.ts'
import { createDiskUsage } from './diskUsage.ts'
import { resourceFamilies } from './resourceMetrics.ts'
import { summaryOf, volumesOf } from './summary.ts'
import type { GroupUsage, NodeUsage } from './usage.ts'
import { volumeFamilies } from './volumeMetrics.ts'

const noMemory = { usageBytes: 0, rssBytes: 0, cacheBytes: 0, swapBytes: 0, mappedFileBytes: 0, kernelBytes: 0, maxUsageBytes: 0, failures: 0 }
const noFiles = { activeFileBytes: 0, inactiveFileBytes: 0, pageFaults: 0, majorPageFaults: 0, ownPageFaults: 0, ownMajorPageFaults: 0 }
const noCpu = { cpuNs: 0, cpuUserNs: 0, cpuSystemNs: 0, periods: 0, throttledPeriods: 0, throttledNs: 0, shares: 0, periodUs: 0, quotaUs: 0, nanoCores: 0 }

function group(id: string, workingSetBytes: number, limitBytes = 0): GroupUsage {
  const memory = { ...noMemory, ...noFiles, workingSetBytes, limitBytes, swapLimitBytes: 7, reservationBytes: 0 }
  return { ...noCpu, id, atMs: 0, memory, processes: 1, maxProcesses: 0, oomKills: 0, burstPeriods: 0, burstNs: 0, devices: [] }
}

const stall = (totalUs: number) => ({ totalUs, avg10: 1.5, avg60: 0, avg300: 0 })
const pressure = { some: stall(2), full: stall(1) }
const node: GroupUsage = { ...group('/', 100), pressure: { cpu: pressure, memory: pressure, io: pressure } }
const pod: Pod = { apiVersion: 'v1', kind: 'Pod', metadata: { name: 'p', namespace: 'n', uid: 'u' }, spec: { containers: [] }, status: {} }
const container = { ...group('/kubepods/podu/c', 10), name: 'c', container: 'main', image: 'i', startedAtMs: 0 }
const usage: NodeUsage = {
  node,
  network: [],
  groups: [group('/kubepods', 60, 200)],
  pods: [{ pod, uid: 'u', group: group('/kubepods/podu', 20), containers: [container], sandbox: undefined, network: undefined }],
}

const filesystem = async (path: string) => ({ capacityBytes: path === '/images' ? 50 : 1000, availableBytes: 20, inodes: 9, inodesFree: 4 })
const imageFilesystem = async () => ({ timestamp: 0, fsId: { mountpoint: '/images' }, usedBytes: { value: 30 }, inodesUsed: { value: 2 } })
const context = { host: { filesystem, path: (path: string) => path }, runtime: { imageFilesystem }, machineInfo: { memoryBytes: 300 } }
const config = { nodeName: 'n1', rootDirectory: '/nonexistent', podLogsDirectory: '/nonexistent' }
const view = { config, context: () => context, podStatus: () => undefined } as unknown as KubeletView

interface Summary {
  readonly node: {
    readonly memory: { readonly availableBytes: number; readonly psi: { readonly full: object } }
    readonly systemContainers: readonly { readonly name: string; readonly memory: { readonly availableBytes: number; readonly workingSetBytes: number } }[]
    readonly runtime: Readonly<Record<'imageFs' | 'containerFs', { readonly capacityBytes: number; readonly usedBytes: number; readonly inodesUsed: number }>>
    readonly rlimit: { readonly maxpid: number; readonly curproc: number }
  }
}

test('KUB-17 the Summary has the machine’s processes, all pods together, pressure stalls, and the file system of images', async () => {
  const summary = (await summaryOf({ view, usage, onlyCpuAndMemory: false, writableLayers: new Map() })) as Summary
  const { memory, systemContainers, runtime, rlimit } = summary.node
  assert.equal(memory.availableBytes, 200)
  assert.deepEqual(memory.psi.full, { total: 1000, avg10: 1.5, avg60: 0, avg300: 0 })
  assert.deepEqual(
    systemContainers.map((one) => [one.name, one.memory.workingSetBytes, one.memory.availableBytes]),
    [['pods', 60, 140]],
  )
  for (const fs of [runtime.imageFs, runtime.containerFs]) assert.deepEqual([fs.capacityBytes, fs.usedBytes, fs.inodesUsed], [50, 30, 2])
  const limits = ['pid_max', 'threads-max'].map((name) => Number(readFileSync(`/proc/sys/kernel/${name}`, 'utf8')))
  assert.equal(rlimit.maxpid, Math.min(...limits))
  assert.ok(rlimit.curproc > 0 && rlimit.curproc < rlimit.maxpid)
  const short = (await summaryOf({ view, usage, onlyCpuAndMemory: true, writableLayers: new Map() })) as Summary
  assert.deepEqual([short.node.rlimit, short.node.runtime, short.node.systemContainers.length], [undefined, undefined, 1])
})

test('OBS-10 /metrics/resource reports the swap limit of a container', () => {
  assert.match(prometheusText(resourceFamilies(usage)), /^container_swap_limit_bytes\{container="main",namespace="n",pod="p"\} 7 0$/m)
})

test(
  'KUB-17 the statistics of a claim carry its name, and its volume has the name that the pod gives it',
  { skip: process.getuid?.() !== 0 && 'needs root' },
  () =>
    onMachine(async ({ root, context, host, objects }) => {
      const claimRef = { kind: 'PersistentVolumeClaim', namespace: 'n', name: 'claim', uid: 'c' }
      const volumeSpec = { local: { path: root }, claimRef }
      objects.set('PersistentVolume/pv-1', { apiVersion: 'v1', kind: 'PersistentVolume', metadata: { name: 'pv-1' }, spec: volumeSpec, status: {} })
      const metadata = { name: 'claim', namespace: 'n', uid: 'c' }
      const spec = { volumeName: 'pv-1' }
      objects.set('PersistentVolumeClaim/claim', { apiVersion: 'v1', kind: 'PersistentVolumeClaim', metadata, spec, status: { phase: 'Bound' } })
      const containers = [{ name: 'main', volumeMounts: [{ name: 'data', mountPath: '/data' }] }]
      const claiming: Pod = { ...pod, spec: { containers, volumes: [{ name: 'data', persistentVolumeClaim: { claimName: 'claim' } }] } }
      const manager = createVolumeManager(context)
      await manager.setUpPod(claiming)
      const running = { config: context.config, context: () => context, volumeStatistics: manager.statistics } as unknown as KubeletView
      const measured = await volumesOf({ view: running, disk: createDiskUsage(host, context.clock, 0) }, claiming, 0)
      assert.deepEqual(
        measured.map(({ stats }) => [stats.name, stats.pvcRef]),
        [['data', { name: 'claim', namespace: 'n' }]],
      )
      const capacity = (await host.filesystem(root)).capacityBytes
      const labels = 'namespace="n",persistentvolumeclaim="claim"'
      const text = prometheusText(volumeFamilies(measured.map(({ stats }) => stats)))
      assert.ok(text.includes(`kubelet_volume_stats_capacity_bytes{${labels}} ${capacity}\n`))
      await manager.tearDownPod('u')
    }),
)
